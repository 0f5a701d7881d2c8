package exec

// openNoFollow is 0 because Windows has no such flag. No other user can put a
// link into the directory of results, which belongs to this user alone.
const openNoFollow = 0

// openNonblock is 0 because Windows has no such flag. It is not necessary,
// because directories on Windows have no FIFOs.
const openNonblock = 0
