package taskspec

import (
	"strconv"
	"strings"
	"testing"

	"example.com/runner/jobs/command"
)

func TestCodes(t *testing.T) {
	for _, text := range []string{"1", "255", "75", "75,100-111", "1-255", "1,1", "007"} {
		if err := validCodes("retry_on", text); err != nil {
			t.Errorf("%q: got error %v, want none", text, err)
		}
	}
	for _, text := range []string{"0", "256", ",", "75,", "75, 76", "10-5", "1-", "-1", "1-2-3", "x", "+75", "1-+5", "1_0", "0x10", "９",
		"99999999999999999999"} {
		err := validCodes("retry_on", text)
		if err == nil {
			t.Errorf("%q: got no error, want one", text)
		} else if bad := strings.Split(text, ","); !strings.Contains(err.Error(), strconv.Quote(bad[len(bad)-1])) &&
			!strings.Contains(err.Error(), strconv.Quote(bad[0])) {
			t.Errorf("%q: got error %v, want one that quotes the first or the last part", text, err)
		}
	}
	for code, want := range map[int]bool{0: false, 74: false, 75: true, 100: true, 111: true, 112: false} {
		if got := HasCode("75,100-111", code); got != want {
			t.Errorf("75,100-111 contains %d: got %v, want %v", code, got, want)
		}
	}
	for _, code := range []int{0, 255} {
		if !HasCode("", code) {
			t.Errorf("the empty set does not contain %d, want every code", code)
		}
	}
}

func FuzzCodes(f *testing.F) {
	for _, text := range []string{"", "75", "75,100-111", "1-255", "-", ",", "1-2-3", "255-1", "+1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c := command.Codes(text)
		if validCodes("retry_on", text) != nil {
			return
		}
		// validCodes has accepted the text. So the text must contain only
		// digits, '-' and ','. The set must contain at least one code from 1 to
		// 255.
		if strings.Trim(text, "0123456789-,") != "" {
			t.Fatalf("%q: got no error, want one for characters other than digits, '-' and ','", text)
		}
		some := false
		for code := 1; code <= 255; code++ {
			some = some || HasCode(c, code)
		}
		if !some || text != "" && (HasCode(c, 0) || HasCode(c, 256)) {
			t.Fatalf("%q: got 0: %v, 256: %v, another code: %v; want at least one code from 1 to 255, and neither 0 nor 256",
				text, HasCode(c, 0), HasCode(c, 256), some)
		}
	})
}
