package taskspec

import (
	"reflect"
	"slices"
	"testing"

	"example.com/runner/jobs"
)

// notCompared lists the fields of a Spec that ScheduleChanges does not compare.
// The task of a schedule cannot have these fields, or the Runner sets them.
var notCompared = []string{"Err", "DependsOnEarlier", "DependsOnAnyEarlier", "Replace", "UntilStart", "Paused", "RunAt", "ExpiresAt",
	"Schedule", "Tick",
	"CreatedBy", "Batch"}

func TestScheduleChangesNamesEverySettingOfTask(t *testing.T) {
	spec := reflect.TypeFor[jobs.Spec]()
	for i := range spec.NumField() {
		field := spec.Field(i)
		var old, changed jobs.Schedule
		setNonZero(t, reflect.ValueOf(&changed.Spec).Elem().Field(i))
		want := !slices.Contains(notCompared, field.Name)
		if got := ScheduleChanges(&old, &changed); (len(got) > 0) != want {
			t.Errorf("%s: got changes %q, want some: %v", field.Name, got, want)
		}
	}
}

// setNonZero sets a field to a value other than its zero value.
func setNonZero(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"A": "1"}))
	case reflect.Struct:
		if v.NumField() > 0 && v.Field(0).CanSet() {
			setNonZero(t, v.Field(0))
		}
	}
}
