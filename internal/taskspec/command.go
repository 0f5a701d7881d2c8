package taskspec

import "example.com/runner/jobs"

// CheckCommand validates the options of a task that runs a command. It does not check the command itself. Workers call it, because a user
// may have added the task with SQL, and then nobody has called Validate. The error is a *FieldError.
func CheckCommand(t *jobs.Task) error {
	s := jobs.Spec{Job: t.Job, Options: t.Options}
	for _, option := range Options {
		if option.Commands || option.Key == "retry_on" {
			if err := option.Field(&s).check(option); err != nil {
				return err
			}
		}
	}
	return nil
}
