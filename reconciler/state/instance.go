package state

import "fmt"

// instances holds the name of the instance whose records a store has.
var instances = Bucket[string]{aboutBucket}

const instanceKey = "instance"

// OtherInstanceError says that records are another instance's.
type OtherInstanceError struct{ Has, Want string }

// Error says so, and what to do.
func (e *OtherInstanceError) Error() string {
	return fmt.Sprintf("the records are those of instance %q, and this is instance %q: give each instance a state directory of its own", e.Has, e.Want)
}

// Claim notes that the records are an instance's. It fails with an OtherInstanceError if they
// are another one's. Records of an earlier weir name no instance, and become this one's.
func Claim(s Store, instance string) error {
	if err := CheckInstance(s, instance); err != nil {
		return err
	}
	return s.Update(func(tx *Tx) error {
		_, named, err := instances.Get(tx, instanceKey)
		if err != nil || named {
			return err
		}
		return instances.Put(tx, instanceKey, instance)
	})
}

// CheckInstance is Claim without a note: it only reads.
func CheckInstance(s Store, instance string) error {
	return s.View(func(tx *Tx) error {
		has, named, err := instances.Get(tx, instanceKey)
		if err == nil && named && has != instance {
			err = &OtherInstanceError{has, instance}
		}
		return err
	})
}
