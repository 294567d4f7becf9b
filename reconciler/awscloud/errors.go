package awscloud

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/weir-gitops/weir/reconciler/plan"
)

// commonCodes are error codes that mean the same in every service.
var commonCodes = map[string]plan.ErrorKind{
	"RequestLimitExceeded":     plan.Throttled,
	"Throttling":               plan.Throttled,
	"ThrottlingException":      plan.Throttled,
	"ThrottledException":       plan.Throttled,
	"TooManyRequestsException": plan.Throttled,
	"EC2ThrottledException":    plan.Throttled,

	"InternalError":               plan.Transient,
	"InternalFailure":             plan.Transient,
	"InternalServerError":         plan.Transient,
	"InternalServerException":     plan.Transient,
	"ServiceFailure":              plan.Transient,
	"ServiceFailureException":     plan.Transient,
	"ServiceUnavailable":          plan.Transient,
	"ServiceUnavailableException": plan.Transient,
	"ServerException":             plan.Transient,
	"Unavailable":                 plan.Transient,
	"RequestTimeout":              plan.Transient,
	"RequestTimeoutException":     plan.Transient,

	"AccessDenied":          plan.Denied,
	"AccessDeniedException": plan.Denied,
	"UnauthorizedOperation": plan.Denied,
	"OptInRequired":         plan.Denied,

	"AuthFailure":                 plan.Credentials, // also of a region that the account has not enabled
	"ExpiredToken":                plan.Credentials,
	"ExpiredTokenException":       plan.Credentials,
	"RequestExpired":              plan.Credentials,
	"InvalidClientTokenId":        plan.Credentials,
	"SignatureDoesNotMatch":       plan.Credentials,
	"UnrecognizedClientException": plan.Credentials,
	"MissingAuthenticationToken":  plan.Credentials,
	"IncompleteSignature":         plan.Credentials,

	"IdempotentParameterMismatch": plan.TokenClash,

	"InvalidAction":               plan.Invalid,
	"InvalidParameterValue":       plan.Invalid,
	"InvalidParameterCombination": plan.Invalid,
	"MissingParameter":            plan.Invalid,
	"UnknownParameter":            plan.Invalid,
	"ValidationError":             plan.Invalid,
	"ValidationException":         plan.Invalid,
}

// serviceCodes are those that mean something in one service only.
var serviceCodes = map[string]map[string]plan.ErrorKind{
	"ec2": {
		"InvalidAMIID.Unavailable":                         plan.NotFound,
		"InvalidUserData.Malformed":                        plan.Invalid,
		"InvalidLaunchTemplateName.MalformedException":     plan.Invalid,
		"InvalidLaunchTemplateId.Malformed":                plan.Invalid,
		"InvalidLaunchTemplateId.VersionNotFound":          plan.NotFound,
		"InvalidLaunchTemplateName.AlreadyExistsException": plan.AlreadyThere,
		"InvalidLaunchTemplateName.NotFoundException":      plan.NotFound,
		"InvalidInstanceType":                              plan.Invalid,
		"InvalidAMIID.Malformed":                           plan.Invalid,
		"InvalidNextToken":                                 plan.Transient,
		"InvalidLaunchTemplateVersion.NotFound":            plan.NotFound,
		"VersionLimitExceeded":                             plan.Quota,
		"ResourceLimitExceeded":                            plan.Quota,
	},
	"autoscaling": {
		"AlreadyExists":                 plan.AlreadyThere,
		"ScalingActivityInProgress":     plan.Busy,
		"ResourceInUse":                 plan.Busy,
		"ResourceContention":            plan.Busy,
		"InstanceRefreshInProgress":     plan.Busy,
		"IdempotentCallInProgress":      plan.Busy,
		"ActiveInstanceRefreshNotFound": plan.NotFound,
		"ServiceLinkedRoleFailure":      plan.Transient,
		"LimitExceeded":                 plan.Quota,
		"IrreversibleInstanceRefresh":   plan.Invalid,
		"InvalidNextToken":              plan.Transient,
	},
	"eks": {
		"ResourceNotFoundException":            plan.NotFound,
		"NotFoundException":                    plan.NotFound,
		"ResourceInUseException":               plan.Busy,
		"ResourceLimitExceededException":       plan.Quota,
		"ResourcePropagationDelayException":    plan.Transient,
		"InvalidParameterException":            plan.Invalid,
		"InvalidRequestException":              plan.Invalid,
		"InvalidStateException":                plan.Busy,
		"BadRequestException":                  plan.Invalid,
		"ClientException":                      plan.Invalid,
		"UnsupportedAvailabilityZoneException": plan.Invalid,
	},
	"ssm": {
		"ParameterNotFound":        plan.NotFound,
		"ParameterVersionNotFound": plan.NotFound,

		"InvalidResourceId":                    plan.NotFound,
		"ParameterAlreadyExists":               plan.AlreadyThere,
		"TooManyUpdates":                       plan.Throttled,
		"ParameterLimitExceeded":               plan.Quota,
		"ParameterMaxVersionLimitExceeded":     plan.Quota,
		"TooManyTagsError":                     plan.Quota,
		"HierarchyLevelLimitExceededException": plan.Invalid,
		"HierarchyTypeMismatchException":       plan.Invalid,
		"InvalidKeyId":                         plan.Invalid,
		"UnsupportedParameterType":             plan.Invalid,
	},
	"iam": {
		"NoSuchEntity":          plan.NotFound,
		"NoSuchEntityException": plan.NotFound,
		"InvalidInput":          plan.Invalid,
	},
	"sts": {
		"RegionDisabledException": plan.Denied,
	},
}

// classify turns any failure of a call into a *plan.Error, once and by its code.
// An error that is one already is returned as it is; nil stays nil.
func classify(service, operation string, err error) *plan.Error {
	if err == nil {
		return nil
	}
	var known *plan.Error
	if errors.As(err, &known) {
		return known
	}
	out := &plan.Error{Service: service, Operation: operation, Err: err}
	var response *awshttp.ResponseError
	if errors.As(err, &response) {
		out.RequestID = response.ServiceRequestID()
	}
	if cancelled(err) {
		out.Kind, out.Code, out.Message = plan.Cancelled, "Cancelled", "the call was cancelled"
		return out
	}
	var missing *credentialsError
	var bound *boundError
	var api smithy.APIError
	switch {
	case errors.As(err, &missing):
		classifyCredentials(out, missing)
	case errors.As(err, &bound):
		out.Kind, out.Code, out.Message = plan.Unknown, bound.code, bound.text // no retry makes it smaller
	case errors.As(err, &api):
		out.Code, out.Message = api.ErrorCode(), head(api.ErrorMessage())
		out.Kind = kindOf(service, operation, out.Code, out.Message)
		if out.Kind == plan.Unknown {
			out.Kind = kindOfStatus(err)
		}
		switch {
		case out.Kind == plan.Denied:
			out.Message = denied(service, operation, out.Message)
		case plan.LaunchHint(out.Message) != "":
			out.Message += ": " + plan.LaunchHint(out.Message)
		case out.Code == "AuthFailure":
			out.Message = strings.TrimSpace(out.Message + ` (the credentials are not valid, or the account has not enabled the region)`)
		}
	default:
		classifyTransport(out, err)
	}
	if out.Kind != plan.Denied { // there AWS gives a text to decode
		out.Message = withoutBlobs(out.Message)
	}
	bounded(out)
	return out
}

// bounded cuts the texts of a failure once, before a log, a page or a history
// has them, and does not keep a long one behind it.
func bounded(e *plan.Error) {
	if e.Err != nil && len(e.Err.Error()) > 2*longestSaid {
		e.Err = nil
	}
	e.Code, e.RequestID, e.Message = cut(e.Code, longestCode), cut(e.RequestID, longestCode), cut(e.Message, longestSaid)
}

func cancelled(err error) bool {
	var c *smithy.CanceledError
	var waited *waitError
	if errors.As(err, &waited) {
		return true // the caller's time ran out before anything was sent
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return false // the attempt's own time ran out: that may pass
	}
	return errors.As(err, &c) || errors.Is(err, context.Canceled)
}

// classifyCredentials is for calls that were not made for lack of credentials.
func classifyCredentials(out *plan.Error, missing *credentialsError) {
	out.Kind, out.Code, out.Message = plan.Credentials, "NoCredentials", head(missing.Error())
	var api smithy.APIError
	if !errors.As(missing.err, &api) {
		out.Message = withoutCredentials(out.Message, missing)
		return
	}
	out.Service, out.Operation = "sts", "AssumeRole"
	out.Code, out.Message = api.ErrorCode(), head(api.ErrorMessage())
	switch out.Kind = kindOf("sts", "AssumeRole", out.Code, out.Message); out.Kind {
	case plan.Denied:
		out.Message = denied("sts", "AssumeRole", out.Message)
	case plan.Throttled, plan.Transient:
	default:
		out.Kind = plan.Credentials
	}
}

// classifyTransport is for failures without an answer of AWS's in its own form.
func classifyTransport(out *plan.Error, err error) {
	var params smithy.InvalidParamsError
	var deserialization *smithy.DeserializationError
	var send *smithyhttp.RequestSendError
	var network net.Error
	var address *url.Error
	out.Message = head(cause(err))
	switch {
	case errors.As(err, &params):
		out.Kind, out.Code, out.Message = plan.Invalid, "InvalidParams", params.Error()
	case errors.As(err, &deserialization):
		// Something between weir and AWS answered, in HTML most of the time.
		out.Kind, out.Code = kindOfStatus(err), "UnreadableAnswer"
	case errors.As(err, &address), errors.As(err, &send), errors.As(err, &network):
		out.Kind, out.Code = plan.Transient, "ConnectionFailed"
		if address != nil { // what the SDK puts around it says nothing more
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

// cause is the innermost part of an SDK error that still says what happened.
func cause(err error) string {
	var op *smithy.OperationError
	if errors.As(err, &op) {
		return op.Err.Error()
	}
	return err.Error()
}

// kindOfStatus is the last resort for a code that no table holds.
func kindOfStatus(err error) plan.ErrorKind {
	var response *smithyhttp.ResponseError
	if !errors.As(err, &response) {
		return plan.Unknown
	}
	switch status := response.HTTPStatusCode(); {
	case status == http.StatusTooManyRequests:
		return plan.Throttled
	case status == http.StatusForbidden:
		return plan.Denied
	case status >= http.StatusInternalServerError:
		return plan.Transient
	}
	return plan.Unknown
}

// kindOf decides by code; by message only where AWS uses one code for several
// things, which Auto Scaling's ValidationError and two codes of EKS are.
// Assumed of AWS: codes-told-apart-by-text.
func kindOf(service, operation, code, message string) plan.ErrorKind {
	lower := strings.ToLower(message)
	switch {
	case service == "autoscaling" && code == "ValidationError":
		if strings.Contains(lower, "active instance refresh with a desired configuration") {
			return plan.Busy
		}
		if containsAny(lower, "not found", "does not exist", "could not find the specified version") {
			return plan.NotFound
		}
	case service == "autoscaling" && code == "ResourceInUse" && strings.Contains(lower, "deletion protection"):
		return plan.Invalid // waiting does not lower it
	case service == "eks" && code == "ResourceInUseException" && strings.HasPrefix(operation, "Create"):
		return plan.AlreadyThere
	case service == "eks" && (code == "InvalidRequestException" || code == "InvalidParameterException"):
		if containsAny(lower, "not authorized to") {
			return plan.Denied // EKS asked EC2 or IAM, with the caller's permissions
		}
		if containsAny(lower, "clientrequesttoken", "client request token", "idempoten") {
			return plan.TokenClash
		}
		if code == "InvalidRequestException" && containsAny(lower, "not active", "must be active", "in progress", "is currently", "status") {
			return plan.Busy
		}
	}
	if k, ok := serviceCodes[service][code]; ok {
		return k
	}
	if k, ok := commonCodes[code]; ok {
		return k
	}
	if service == "ec2" {
		return kindOfEC2(code)
	}
	return plan.Unknown
}

// kindOfEC2 reads the parts that EC2's codes are made of.
// Assumed of AWS: quota-codes.
func kindOfEC2(code string) plan.ErrorKind {
	switch {
	case strings.HasPrefix(code, "Invalid") && (strings.HasSuffix(code, ".NotFound") || strings.HasSuffix(code, ".NotFoundException")):
		return plan.NotFound
	case strings.HasSuffix(code, "AlreadyExistsException"), strings.HasSuffix(code, ".Duplicate"):
		return plan.AlreadyThere
	case strings.HasSuffix(code, "LimitExceeded"), strings.HasSuffix(code, "LimitExceededException"):
		return plan.Quota
	case strings.HasPrefix(code, "Invalid"), strings.HasSuffix(code, "Malformed"):
		return plan.Invalid
	}
	return plan.Unknown
}

func containsAny(s string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}

var deniedAction = regexp.MustCompile(`not authorized to perform:? ([a-z0-9-]+:[A-Za-z0-9*]+)`)

// denied puts the missing IAM action first. AWS names it most of the time, and
// it is not always the operation's: a group with an instance profile needs
// iam:PassRole.
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

// ofLaunch recognises how Auto Scaling and EKS say that EC2's dry run of a launch
// was denied: they name none of the actions that a launch takes.
func ofLaunch(message string) bool {
	return containsAny(strings.ToLower(message), "not authorized to use launch template", "not authorized to launch instances with this launch template")
}
