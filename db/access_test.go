package db

import "testing"

func TestServerChecksRightsOfItsUsersItself(t *testing.T) {
	if err := Insecure("postgres://ann@db.example.com/app", 1000); err != nil {
		t.Errorf("got error %v, want none", err)
	}
}
