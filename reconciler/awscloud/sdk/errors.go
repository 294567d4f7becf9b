package sdk

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/launch"
	"github.com/weir-gitops/weir/render/lazyregexp"
)

// Classify converts any error of a call to an *observed.Error, by its code. It returns an *observed.Error
// unchanged, and nil for nil.
func Classify(service, operation string, err error) *observed.Error {
	if err == nil {
		return nil
	}
	var known *observed.Error
	if errors.As(err, &known) {
		return known
	}
	out := &observed.Error{Service: service, Operation: operation, Err: err}
	var response *awshttp.ResponseError
	if errors.As(err, &response) {
		out.RequestID = response.ServiceRequestID()
	}
	if cancelled(err) {
		out.Kind, out.Code, out.Message = observed.Cancelled, "Cancelled", "the call was cancelled"
		return out
	}
	var missing *credentialsError
	var bound *boundError
	var fence *fenceError
	var api smithy.APIError
	switch {
	case errors.As(err, &fence) && fence.sent:
		out.Kind, out.Code, out.Message = observed.Transient, "LeaseEnded", fence.Error()+": the next read shows the result"
	case errors.As(err, &fence):
		out.Kind, out.Code, out.Message = observed.Fenced, "NotSent", fence.Error()
	case errors.As(err, &missing):
		classifyCredentials(out, missing)
	case errors.As(err, &bound):
		out.Kind, out.Code, out.Message = observed.Unknown, bound.code, bound.text // a retry would not make the answer smaller
	case errors.As(err, &api):
		out.Code, out.Message = api.ErrorCode(), head(api.ErrorMessage())
		out.Kind = kindOf(service, operation, out.Code, out.Message)
		if out.Kind == observed.Unknown {
			out.Kind = kindOfStatus(err)
		}
		switch {
		case out.Kind == observed.Denied:
			out.Message = denied(service, operation, out.Message)
		case launch.Hint(out.Message) != "":
			out.Message += ": " + launch.Hint(out.Message)
		case out.Code == "AuthFailure":
			out.Message = strings.TrimSpace(out.Message + ` (the credentials are not valid, or the account has not enabled the region)`)
		}
	default:
		classifyTransport(out, err)
	}
	if out.Kind != observed.Denied { // for a denial AWS returns an encoded text to decode
		out.Message = withoutBlobs(out.Message)
	}
	Bounded(out)
	return out
}

// WouldSucceed reports whether an error means that a dry run would succeed.
func WouldSucceed(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && api.ErrorCode() == "DryRunOperation"
}

// Bounded shortens the texts of an error before a log, a page or a history contains them, and drops a long
// cause.
func Bounded(e *observed.Error) {
	if e.Err != nil && len(e.Err.Error()) > 2*longestSaid {
		e.Err = nil
	}
	e.Code, e.RequestID, e.Message = cut(e.Code, longestCode), cut(e.RequestID, longestCode), cut(e.Message, longestSaid)
}

func cancelled(err error) bool {
	var c *smithy.CanceledError
	var waited *waitError
	if errors.As(err, &waited) {
		return true // the caller's time ran out before the request was sent
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return false // the time for one attempt ran out, which may pass
	}
	return errors.As(err, &c) || errors.Is(err, context.Canceled)
}

// classifyCredentials classifies errors of calls that were not sent because credentials were missing.
func classifyCredentials(out *observed.Error, missing *credentialsError) {
	out.Kind, out.Code, out.Message = observed.Credentials, "NoCredentials", head(missing.Error())
	var api smithy.APIError
	if !errors.As(missing.err, &api) {
		out.Message = withoutCredentials(out.Message, missing)
		return
	}
	out.Service, out.Operation = "sts", "AssumeRole"
	out.Code, out.Message = api.ErrorCode(), head(api.ErrorMessage())
	switch out.Kind = kindOf("sts", "AssumeRole", out.Code, out.Message); out.Kind {
	case observed.Denied:
		out.Message = denied("sts", "AssumeRole", out.Message)
	case observed.Throttled, observed.Transient:
	default:
		out.Kind = observed.Credentials
	}
}

// classifyTransport classifies errors without an answer in AWS's format.
func classifyTransport(out *observed.Error, err error) {
	var params smithy.InvalidParamsError
	var deserialization *smithy.DeserializationError
	var send *smithyhttp.RequestSendError
	var network net.Error
	var address *url.Error
	out.Message = head(cause(err))
	switch {
	case errors.As(err, &params):
		out.Kind, out.Code, out.Message = observed.Invalid, "InvalidParams", params.Error()
	case errors.As(err, &deserialization):
		// Something between weir and AWS answered, usually in HTML.
		out.Kind, out.Code = kindOfStatus(err), "UnreadableAnswer"
	case errors.As(err, &address), errors.As(err, &send), errors.As(err, &network):
		out.Kind, out.Code = observed.Transient, "ConnectionFailed"
		if address != nil { // the SDK's wrapping adds nothing
			out.Message = address.Err.Error()
			if u, err := url.Parse(address.URL); err == nil && !strings.Contains(out.Message, u.Host) {
				out.Message = u.Host + ": " + out.Message
			}
		}
		if plain := noSuchHost(err); plain != "" {
			out.Message = plain
		}
	default:
		out.Kind, out.Code = kindOfStatus(err), "Unknown"
	}
}

// cause returns the innermost part of an SDK error that still describes the error.
func cause(err error) string {
	var op *smithy.OperationError
	if errors.As(err, &op) {
		return op.Err.Error()
	}
	return err.Error()
}

var deniedAction = lazyregexp.New(`not authorized to perform:? ([a-z0-9-]+:[A-Za-z0-9*]+)`)

// denied puts the missing IAM action first. AWS usually names it, and it is not always the operation's: a
// group with an instance profile needs iam:PassRole.
func denied(service, operation, message string) string {
	needs := service + ":" + operation
	if m := deniedAction.FindStringSubmatch(message); m != nil {
		needs = m[1]
	} else if ofLaunch(message) {
		needs = "ec2:RunInstances, ec2:CreateTags or iam:PassRole, for what the launch template names"
	}
	text := "needs " + needs
	if message != "" {
		text += ": " + message
	}
	if strings.Contains(strings.ToLower(message), "encoded authorization failure message") {
		text += " (aws sts decode-authorization-message tells which)"
	}
	return text
}

// ofLaunch recognizes the messages of Auto Scaling and EKS about a denied dry run of a launch in EC2. They
// name none of the required actions.
func ofLaunch(message string) bool {
	return containsAny(strings.ToLower(message), "not authorized to use launch template", "not authorized to launch instances with this launch template")
}

// AsError is Classify for functions that return an error, because a nil *observed.Error must not become a
// non-nil error.
func AsError(service, operation string, err error) error {
	if err == nil {
		return nil
	}
	return Classify(service, operation, err)
}

// Incomplete returns the error for an answer without a member that AWS's model allows to be absent. weir
// does not guess: the request may have succeeded, and the next pass reads the result.
func Incomplete(service, operation, member string) *observed.Error {
	return &observed.Error{Kind: observed.Transient, Service: service, Operation: operation, Code: "IncompleteAnswer", Message: "the answer has no " + member}
}
