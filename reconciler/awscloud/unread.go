package awscloud

import (
	"errors"

	"github.com/weir-gitops/weir/reconciler/plan"
)

// refused returns a read's error if AWS denied it for want of a permission: what
// was to be read is then noted as unread, and the others are read on. Any other
// failure ends the pass.
func refused(err error) *plan.Error {
	var e *plan.Error
	if errors.As(err, &e) && e.Kind == plan.Denied {
		return e
	}
	return nil
}

// note puts a refusal into a map of an Unread, which it makes if need be. The
// map may belong to a state that was handed out, so it is copied.
func note[K comparable](m map[K]*plan.Error, key K, err *plan.Error) map[K]*plan.Error {
	m = cloned(m)
	m[key] = err
	return m
}
