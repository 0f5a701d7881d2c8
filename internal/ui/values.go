package ui

// These types and functions convert values of Go to values in records.

// hidden returns the environment variables with null in place of their values.
func hidden(env map[string]string) map[string]*string {
	if len(env) == 0 {
		return nil
	}
	names := make(map[string]*string, len(env))
	for name := range env {
		names[name] = nil
	}
	return names
}

// Records calls the function "record" for each element of a list and returns the results.
func Records[T, R any](list []T, record func(T) R) []R {
	made := make([]R, len(list))
	for i, one := range list {
		made[i] = record(one)
	}
	return made
}
