package taskspec

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/test/testkit"
)

func TestDefaultOptionsAreNotStored(t *testing.T) {
	o := jobs.NewSpec("").Options
	if text, err := EncodeOptions(&o); text != nil || err != nil {
		t.Errorf("got text %q and error %v, want neither", text, err)
	}
	testkit.Equal(t, "options without a text", DecodeOptions(nil), o)
}

func TestOptionsSurviveEncodeAndDecode(t *testing.T) {
	name := rapid.OneOf(rapid.SampledFrom([]string{"", "/bin/true", "/<&>"}), rapid.StringN(0, 20, -1))
	rapid.Check(t, func(r *rapid.T) {
		ms := func(label string) time.Duration {
			return time.Duration(rapid.Int64Range(0, MaxDelay.Milliseconds()).Draw(r, label)) * time.Millisecond
		}
		o := jobs.Options{Timeout: ms("timeout"),
			Settings: command.Settings{KillAfter: ms("kill after"), OutputLimit: rapid.Int64Range(0, 1<<40).Draw(r, "limit"),
				RetryOn: rapid.SampledFrom([]command.Codes{"", "75", "1,100-111"}).Draw(r, "codes")},
			Backoff: jobs.Backoff{Strategy: rapid.SampledFrom([]jobs.BackoffStrategy{jobs.BackoffFixed, jobs.BackoffLinear,
				jobs.BackoffExponential}).Draw(r,
				"backoff"),
				Delay: ms("delay"),
				Max:   ms("max")},
			Path: name.Draw(r, "path"),
			Cwd:  name.Draw(r, "cwd"), EnvFile: name.Draw(r, "file"),
			Env:     rapid.SampledFrom([]map[string]string{nil, {"A": "b"}, {"A": "", "B": "é"}}).Draw(r, "env"),
			Unknown: rapid.SampledFrom([]map[string]json.RawMessage{nil, {"gpu": json.RawMessage(`{"n":2}`)}}).Draw(r, "unknown")}
		if rapid.Bool().Draw(r, "defaults") {
			o.Backoff, o.KillAfter = jobs.NewSpec("").Backoff, jobs.NewSpec("").KillAfter
		}
		text, err := EncodeOptions(&o)
		if got := DecodeOptions(text); err != nil || !reflect.DeepEqual(got, o) {
			r.Fatalf("from %s: got options %+v and error %v, want %+v", text, got, err, o)
		}
	})
}

func TestCheckKnownNamesUnknownOptions(t *testing.T) {
	for text, want := range map[string]string{
		`{"timeout":1000}`:          "",
		`{"gpu":1,"disk":2}`:        "unknown option disk, gpu",
		`{"timeout":1000,"gpu":{}}`: "unknown option gpu",
		`x`:                         "cannot be read",
		`[1]`:                       "cannot be read",
		`{"timeout":"long"}`:        "cannot be read",
		`{"kill_after":null}`:       "cannot be read",
		`{"path":{"a":"b"}}`:        "cannot be read",
	} {
		o := DecodeOptions([]byte(text))
		err := CheckKnown(&o)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got error %v, want one with %q (none if empty)", text, err, want)
		}
	}
}

// TestEveryOptionThatDiffersFromItsDefaultIsStored: hasDefaults names each
// field, so it must not forget one. The flags of Unique are only for the
// enqueue.
func TestEveryOptionThatDiffersFromItsDefaultIsStored(t *testing.T) {
	var fields func(v reflect.Value, o *jobs.Options, name string)
	fields = func(v reflect.Value, o *jobs.Options, name string) {
		if v.Kind() == reflect.Struct {
			for i := range v.NumField() {
				fields(v.Field(i), o, name+"."+v.Type().Field(i).Name)
			}
			return
		}
		before := reflect.New(v.Type()).Elem()
		before.Set(v)
		switch v.Kind() {
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		case reflect.String:
			v.SetString(v.String() + "1")
		case reflect.Bool:
			v.SetBool(!v.Bool())
		case reflect.Map:
			v.Set(reflect.MakeMap(v.Type()))
			v.SetMapIndex(reflect.ValueOf("k"), reflect.Zero(v.Type().Elem()))
		default:
			v.SetInt(v.Int() + 1)
		}
		if isFlag := strings.HasPrefix(name, "Options.Unique.") && v.Kind() == reflect.Bool; hasDefaults(o) != isFlag {
			t.Errorf("%s differs from its default and would not be stored", name)
		}
		v.Set(before)
	}
	o := jobs.NewSpec("").Options
	fields(reflect.ValueOf(&o).Elem(), &o, "Options")
	if !hasDefaults(&o) {
		t.Error("the defaults would be stored")
	}
}
