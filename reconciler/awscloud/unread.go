package awscloud

import (
	"errors"

	"github.com/weir-gitops/weir/reconciler/observed"
)

// refused returns a read's error if AWS denied it for want of a permission: what
// was to be read is then noted as unread, and the others are read on. Any other
// failure ends the pass.
func refused(err error) *observed.Error {
	var e *observed.Error
	if errors.As(err, &e) && e.Kind == observed.Denied {
		return e
	}
	return nil
}

// note puts a refusal into a map of an Unread, which it makes if need be. The
// map may belong to a state that was handed out, so it is copied.
func note[K comparable](m map[K]*observed.Error, key K, err *observed.Error) map[K]*observed.Error {
	m = cloned(m)
	m[key] = err
	return m
}
