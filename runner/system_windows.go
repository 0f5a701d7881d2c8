package runner

// openNoFollow has no counterpart here: the directory belongs to this user alone.
const openNoFollow = 0
