package process

// Key names an attempt: two numbers that the caller never uses twice together.
type Key struct{ ID, Generation int64 }
