package observed

import (
	"fmt"
)

// ErrorKind classifies a failed AWS call once, by its code; retries, exit codes,
// metric labels and status texts all read it.
type ErrorKind string

// Error kinds.
const (
	NotFound     ErrorKind = "not-found"
	AlreadyThere ErrorKind = "already-exists"
	TokenClash   ErrorKind = "token-clash"
	Busy         ErrorKind = "busy"
	Throttled    ErrorKind = "throttled"
	Transient    ErrorKind = "transient"
	Denied       ErrorKind = "denied"
	Credentials  ErrorKind = "credentials"
	Quota        ErrorKind = "quota"
	Invalid      ErrorKind = "invalid"
	Cancelled    ErrorKind = "cancelled"
	Fenced       ErrorKind = "fenced" // not sent: another weir may be the owner now, or people hold it
	Unknown      ErrorKind = "unknown"
)

// CodeChanged is the code of a write that weir did not send, because the resource was not
// as the pass had observed it.
const CodeChanged = "ChangedSinceObserved"

// Error is a failed AWS call.
type Error struct {
	Kind      ErrorKind
	Service   string // ec2, autoscaling, eks, ssm, sts, iam
	Operation string // CreateLaunchTemplate
	Code      string // AWS's
	Message   string
	RequestID string
	// Unknown is the name in a manifest that AWS does not know, zero for another
	// failure.
	Unknown UnknownName
	// Err is the cause, for errors.Is and errors.As.
	Err error
}

// Error prints service:Operation: Code: message.
func (e *Error) Error() string {
	s := fmt.Sprintf("%s:%s: %s", e.Service, e.Operation, e.Code)
	if e.Message != "" {
		s += ": " + e.Message
	}
	if e.RequestID != "" {
		s += " (request " + e.RequestID + ")"
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Passes reports whether the failure is transient: nobody needs to fix anything.
func (e *Error) Passes() bool {
	switch e.Kind {
	case Throttled, Transient, Busy, TokenClash, Cancelled, Fenced:
		return true
	case NotFound, AlreadyThere, Denied, Credentials, Quota, Invalid, Unknown:
	}
	return false
}

// Unread holds what AWS would not let weir read in this pass, with its refusals.
// Its content is neither known nor absent: pools that need it are not planned, nothing
// is deleted that might still be in use by it, and all else goes on.
type Unread struct {
	// Clusters are EKS clusters whose nodegroups could not be listed.
	Clusters   map[string]*Error
	Nodegroups map[NodegroupName]*Error
	// Updates holds nodegroups whose updates could not be read, Refreshes groups whose instance
	// refreshes could not be read, and Versions templates whose versions could not be read, by
	// name.
	Updates   map[NodegroupName]*Error
	Refreshes map[string]*Error
	// Hooks are groups whose lifecycle hooks could not be read.
	Hooks    map[string]*Error
	Versions map[string]*Error
	// VersionUsers holds the templates, by name, whose versions or users of versions could not be
	// read.
	VersionUsers map[string]*Error
}

// Nodegroup is why a nodegroup could not be read, nil if it could.
func (u Unread) Nodegroup(name NodegroupName) *Error {
	if err := u.Nodegroups[name]; err != nil {
		return err
	}
	return u.Clusters[name.Cluster]
}

// Cluster reports whether anything of a cluster's nodegroups could not be read.
func (u Unread) Cluster(name string) bool {
	for n := range u.Nodegroups {
		if n.Cluster == name {
			return true
		}
	}
	return u.Clusters[name] != nil
}
