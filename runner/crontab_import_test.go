package runner_test

import (
	"example.com/runner/internal/input"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

func init() {
	runner.ImportCrontab = func(text string) (list []jobs.Schedule, err error) {
		for _, e := range (input.Crontab{Zone: "Europe/Berlin", Home: "/home/ann"}).Parse(text) {
			if e.Err != nil {
				return nil, e.Err
			}
			list = append(list, e.Schedule)
		}
		return list, nil
	}
}
