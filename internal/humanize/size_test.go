package humanize

import "testing"

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{"65536": 65536, "64KiB": 65536, "1MiB": 1 << 20, "1GiB": 1 << 30, "0": 0} {
		if n, err := ParseSize(text); err != nil || n != want {
			t.Errorf("%s: got %d, error %v; want %d", text, n, err, want)
		}
	}
	for _, text := range []string{"", "KiB", "-1", "+1", "1.5MiB", "64kb", "64 KiB", "9223372036854775808", "8589934592GiB"} {
		if n, err := ParseSize(text); err == nil {
			t.Errorf("%q: got %d, want an error", text, n)
		}
	}
}

func FuzzParseSize(f *testing.F) {
	f.Add("64KiB")
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ParseSize(text)
		if err != nil {
			return
		}
		if again, err := ParseSize(ExactSize(n)); n < 0 || err != nil || again != n {
			t.Fatalf("%q: got %d, written as %q and read as %d (%v); want the same size, not negative", text, n, ExactSize(n),
				again,
				err)
		}
	})
}
