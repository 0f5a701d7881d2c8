package exec

// openNoFollow has no counterpart on Windows. The directory of results belongs to this user alone.
const openNoFollow = 0

// openNonblock has no counterpart on Windows. Its directories have no FIFOs.
const openNonblock = 0
