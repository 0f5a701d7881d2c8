package runner

// openNoFollow has no counterpart here: the directory belongs to this user alone.
const openNoFollow = 0

// openNonblock has no counterpart here: there are no FIFOs in directories.
const openNonblock = 0
