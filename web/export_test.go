package web

// Actions returns the names of all actions.
func Actions() []string {
	names := []string{"retry", "cancel", "delete", "hold", "release", "top", "pause", "resume",
		"schedule-run", "schedule-pause", "schedule-resume"}
	for _, name := range names {
		if actions[name] == nil {
			return nil
		}
	}
	if len(actions) != len(names) {
		return nil
	}
	return names
}
