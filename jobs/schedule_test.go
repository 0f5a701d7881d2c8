package jobs

import (
	"reflect"
	"slices"
	"testing"
)

// Every setting that the task of a schedule may have is compared; these it cannot have, or they are the Runner's.
var noneOfASchedule = []string{"Err", "After", "AfterAny", "Earlier", "EarlierAny", "UniqueKey", "Replace", "RunAt", "In", "ExpiresAt",
	"Schedule", "Tick", "CreatedBy"}

func TestDifferencesNameEverySettingOfTheTask(t *testing.T) {
	kind := reflect.TypeFor[Spec]()
	for i := range kind.NumField() {
		field := kind.Field(i)
		var was, is Schedule
		set(t, reflect.ValueOf(&is.Spec).Elem().Field(i))
		if told := was.Differences(&is); (len(told) == 0) != slices.Contains(noneOfASchedule, field.Name) {
			t.Errorf("%s: got %q; want (len(told) == 0) = Contains(noneOfASchedule, field.Name)", field.Name, told)
		}
	}
}

// set gives a field another value than its zero.
func set(t *testing.T, v reflect.Value) {
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
			set(t, v.Field(0))
		}
	}
}
