package observed

import (
	"fmt"
)

// ErrorKind classifies a failed AWS call by its error code. Retries, exit codes, metric labels and status
// texts are all based on it.
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
	Fenced       ErrorKind = "fenced" // not sent: another member may own the scope now, or a person suspended it
	Unknown      ErrorKind = "unknown"
)

// CodeChanged is the code of a write that weir did not send, because the resource had changed since the pass
// observed it.
const CodeChanged = "ChangedSinceObserved"

// Error is a failed AWS call.
type Error struct {
	Kind      ErrorKind
	Service   string // ec2, autoscaling, eks, ssm, sts, iam
	Operation string // CreateLaunchTemplate
	Code      string // AWS's error code
	Message   string
	RequestID string
	// Unknown is the name in a manifest that AWS does not know. It is zero for other failures.
	Unknown UnknownName
	// Err is the cause, for errors.Is and errors.As.
	Err error
}

// Error returns "service:Operation: Code: message".
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

// Passes reports whether the failure is transient, so that nobody needs to fix anything.
func (e *Error) Passes() bool {
	switch e.Kind {
	case Throttled, Transient, Busy, TokenClash, Cancelled, Fenced:
		return true
	case NotFound, AlreadyThere, Denied, Credentials, Quota, Invalid, Unknown:
	}
	return false
}

// Unread lists the resources that AWS did not let weir read in this pass, with the errors. They are neither
// known nor absent. weir does not plan pools that need them, and deletes nothing that they might still use.
// Everything else continues.
type Unread struct {
	// Clusters has EKS clusters whose nodegroups could not be listed.
	Clusters   map[string]*Error
	Nodegroups map[NodegroupName]*Error
	// Updates has nodegroups whose updates could not be read, Refreshes has groups whose instance refreshes
	// could not be read, and Versions has templates whose versions could not be read, by name.
	Updates   map[NodegroupName]*Error
	Refreshes map[string]*Error
	// Hooks has groups whose lifecycle hooks could not be read.
	Hooks    map[string]*Error
	Versions map[string]*Error
	// VersionUsers has templates whose versions or users of versions could not be read, by name.
	VersionUsers map[string]*Error
}

// Nodegroup returns why a nodegroup could not be read, or nil.
func (u Unread) Nodegroup(name NodegroupName) *Error {
	if err := u.Nodegroups[name]; err != nil {
		return err
	}
	return u.Clusters[name.Cluster]
}

// Cluster reports whether anything about a cluster's nodegroups could not be read.
func (u Unread) Cluster(name string) bool {
	for n := range u.Nodegroups {
		if n.Cluster == name {
			return true
		}
	}
	return u.Clusters[name] != nil
}
