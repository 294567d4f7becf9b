package state

import (
	"errors"
	"testing"
)

// Records belong to the instance that first used them. Records of before there were names
// become those of the first instance that claims them.
func TestRecordsOfAnotherInstanceAreRefused(t *testing.T) {
	dir := t.TempDir()
	db := mustOpen(t, dir)
	fill(t, db, 3)
	if err := CheckInstance(db, "prod"); err != nil {
		t.Errorf("records without a name: %v", err)
	}
	for range 2 {
		if err := Claim(db, "prod"); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = mustOpen(t, dir)
	defer db.Close()
	var other *OtherInstanceError
	for _, err := range []error{Claim(db, "staging"), CheckInstance(db, "staging")} {
		if !errors.As(err, &other) || other.Has != "prod" || other.Want != "staging" {
			t.Errorf("another instance: %v", err)
		}
	}
	if err := Claim(db, "prod"); err != nil || len(keys(t, db)) != 3 {
		t.Errorf("the same instance: %v, %d records", err, len(keys(t, db)))
	}
}
