package web

import "testing"

func TestCronWords(t *testing.T) {
	for cron, want := range map[string]string{
		"* * * * *": "every minute", "*/5 * * * *": "every 5 minutes", "*/7 * * * *": "", "0 * * * *": "every hour at :00",
		"0 3 * * *": "every day at 03:00", "0 6 * * MON": "every Monday at 06:00",
		"15 8 * * 1-5": "every day from Monday to Friday at 08:15",
		"0 0 1 * *":    "on day 1 of each month at 00:00", "30 */6 * * *": "every 6 hours at :30",
		"0 9 * * 6,0": "every Saturday, Sunday at 09:00",
		"@hourly":     "", "@every 90s": "every 90s", "0 3 1 1 *": "", "0 3 1 * MON": "", "a b c d e": "",
	} {
		if got := cronWords(cron); got != want {
			t.Errorf("%q: got %q, want %q", cron, got, want)
		}
	}
}
