package state

import "fmt"

// instances has the name of the instance that owns the records of a store.
var instances = Bucket[string]{aboutBucket}

const instanceKey = "instance"

// OtherInstanceError says that the records belong to another instance.
type OtherInstanceError struct{ Has, Want string }

// Error returns both names and what to do.
func (e *OtherInstanceError) Error() string {
	return fmt.Sprintf("the records are those of instance %q, and this is instance %q: give each instance a state directory of its own", e.Has, e.Want)
}

// Claim marks the records as those of an instance. It fails with an OtherInstanceError if they belong to
// another one. Records of earlier releases name no instance, and then become this instance's.
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

// CheckInstance checks like Claim, and only reads.
func CheckInstance(s Store, instance string) error {
	return s.View(func(tx *Tx) error {
		has, named, err := instances.Get(tx, instanceKey)
		if err == nil && named && has != instance {
			err = &OtherInstanceError{has, instance}
		}
		return err
	})
}
