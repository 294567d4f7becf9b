package wire

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/model"
)

// Error is an AWS error answer. Its format on the wire depends on the protocol.
type Error struct {
	Code    string
	Message string
	Status  int            // HTTP status; 0: the code's default
	Extra   map[string]any // further members of a JSON error, such as clusterName
}

// Error implements error.
func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Fail returns an error answer with the default status of its code.
func Fail(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// With adds a member to a JSON error.
func (e *Error) With(name string, value any) *Error {
	if e.Extra == nil {
		e.Extra = map[string]any{}
	}
	e.Extra[name] = value
	return e
}

// HTTPStatus returns the HTTP status of the error: 400, or AWS's own status for the code.
func (e *Error) HTTPStatus() int {
	if e.Status != 0 {
		return e.Status
	}
	switch e.Code {
	case "AuthFailure":
		return http.StatusUnauthorized
	case "UnauthorizedOperation", "AccessDenied", "AccessDeniedException", "MissingAuthenticationToken",
		"MissingAuthenticationTokenException", "InvalidClientTokenId", "UnrecognizedClientException",
		"ExpiredToken", "ExpiredTokenException", "OptInRequired", "SignatureDoesNotMatch":
		return http.StatusForbidden
	case "NoSuchEntity", "ResourceNotFoundException", "NotFoundException":
		return http.StatusNotFound
	case "DryRunOperation":
		return http.StatusPreconditionFailed
	case "ResourceInUseException", "EntityAlreadyExists":
		return http.StatusConflict
	case "RequestEntityTooLarge":
		return http.StatusRequestEntityTooLarge
	case "ResourcePropagationDelayException":
		return http.StatusPreconditionRequired
	case "InternalError", "InternalFailure", "InternalServerError", "ServerException",
		"ResourceContention", "ServiceLinkedRoleFailure":
		return http.StatusInternalServerError
	case "RequestLimitExceeded", "Unavailable", "ServiceUnavailable", "ServiceUnavailableException":
		return http.StatusServiceUnavailable
	}
	return http.StatusBadRequest
}

// Dialect holds a service's wording of the errors that all services have.
type Dialect struct {
	MissingAuth    func() *Error
	InvalidKey     func() *Error
	ExpiredKey     func() *Error
	Throttled      func(op string) *Error
	UnknownAction  func(op, version string) *Error
	unknownParam   func(name string) *Error
	MissingParam   func(name string) *Error
	BadParam       func(name, value, why string) *Error
	badToken       func() *Error
	TokenMismatch  func() *Error
	TooLarge       func() *Error
	Malformed      func(why string) *Error
	InternalFailed func() *Error
}

// EC2Dialect words errors like EC2.
func EC2Dialect() Dialect {
	return Dialect{
		MissingAuth: func() *Error {
			return Fail("AuthFailure", "AWS was not able to validate the provided access credentials")
		},
		InvalidKey: func() *Error {
			return Fail("AuthFailure", "AWS was not able to validate the provided access credentials")
		},
		ExpiredKey: func() *Error {
			return &Error{Code: "RequestExpired", Message: "Request has expired."}
		},
		Throttled: func(string) *Error { return Fail("RequestLimitExceeded", "Request limit exceeded.") },
		UnknownAction: func(op, _ string) *Error {
			return Fail("InvalidAction", "The action %s is not valid for this web service.", op)
		},
		unknownParam: func(name string) *Error {
			return Fail("UnknownParameter", "The parameter %s is not recognized", name)
		},
		MissingParam: func(name string) *Error {
			return Fail("MissingParameter", "The request must contain the parameter %s", name)
		},
		BadParam: func(name, value, why string) *Error {
			return Fail("InvalidParameterValue", "Value (%s) for parameter %s is invalid. %s", value, name, why)
		},
		badToken: func() *Error {
			return Fail("InvalidParameterValue", "Unable to parse pagination token")
		},
		TokenMismatch: func() *Error {
			return Fail("IdempotentParameterMismatch", "The client token you have provided is associated with a resource that was made with different parameters.")
		},
		TooLarge:       func() *Error { return Fail("RequestEntityTooLarge", "The request is larger than 1 MiB") },
		Malformed:      func(why string) *Error { return Fail("MalformedQueryString", "%s", why) },
		InternalFailed: func() *Error { return Fail("InternalError", "An internal error has occurred") },
	}
}

// QueryDialect words errors like Auto Scaling, STS and IAM.
func QueryDialect() Dialect {
	return Dialect{
		MissingAuth: func() *Error {
			return Fail("MissingAuthenticationToken", "Request is missing Authentication Token")
		},
		InvalidKey: func() *Error {
			return Fail("InvalidClientTokenId", "The security token included in the request is invalid.")
		},
		ExpiredKey: func() *Error {
			return Fail("ExpiredToken", "The security token included in the request is expired")
		},
		Throttled: func(string) *Error { return Fail("Throttling", "Rate exceeded") },
		UnknownAction: func(op, version string) *Error {
			return Fail("InvalidAction", "Could not find operation %s for version %s", op, version)
		},
		unknownParam: func(name string) *Error {
			return Fail("MalformedInput", "Unexpected parameter: %s", name)
		},
		MissingParam: func(name string) *Error {
			return Fail("ValidationError", "1 validation error detected: Value null at '%s' failed to satisfy constraint: Member must not be null", LowerFirst(name))
		},
		BadParam: func(name, value, why string) *Error {
			return Fail("ValidationError", "1 validation error detected: Value '%s' at '%s' failed to satisfy constraint: %s", value, LowerFirst(name), why)
		},
		badToken: func() *Error { return Fail("InvalidNextToken", "The NextToken value is not valid.") },
		TokenMismatch: func() *Error {
			return Fail("IdempotentParameterMismatch", "The client token was used before with different parameters.")
		},
		TooLarge:       func() *Error { return Fail("RequestEntityTooLarge", "The request is larger than 1 MiB") },
		Malformed:      func(why string) *Error { return Fail("MalformedInput", "%s", why) },
		InternalFailed: func() *Error { return Fail("InternalFailure", "An internal failure has occurred") },
	}
}

// JSONDialect words errors like SSM and EKS. invalid is the service's error code for a request that breaks a
// rule.
func JSONDialect(invalid string) Dialect {
	return Dialect{
		MissingAuth: func() *Error {
			return Fail("MissingAuthenticationTokenException", "Missing Authentication Token")
		},
		InvalidKey: func() *Error {
			return Fail("UnrecognizedClientException", "The security token included in the request is invalid.")
		},
		ExpiredKey: func() *Error {
			return Fail("ExpiredTokenException", "The security token included in the request is expired")
		},
		Throttled: func(string) *Error {
			return &Error{Code: "ThrottlingException", Message: "Rate exceeded", Status: http.StatusTooManyRequests}
		},
		UnknownAction: func(op, _ string) *Error {
			return &Error{Code: "UnknownOperationException", Message: "Unknown operation " + op, Status: http.StatusNotFound}
		},
		unknownParam: func(name string) *Error { return Fail(invalid, "Unknown parameter: %s", name) },
		MissingParam: func(name string) *Error {
			return Fail(invalid, "1 validation error detected: Value null at '%s' failed to satisfy constraint: Member must not be null", name)
		},
		BadParam: func(name, value, why string) *Error {
			return Fail(invalid, "1 validation error detected: Value '%s' at '%s' failed to satisfy constraint: %s", value, name, why)
		},
		badToken: func() *Error { return Fail(invalid, "Invalid token") },
		TokenMismatch: func() *Error {
			return Fail(invalid, "The client request token was used before with different parameters")
		},
		TooLarge:       func() *Error { return Fail("RequestEntityTooLarge", "The request is larger than 1 MiB") },
		Malformed:      func(why string) *Error { return Fail("SerializationException", "%s", why) },
		InternalFailed: func() *Error { return Fail("ServerException", "An internal failure has occurred") },
	}
}

// refuse returns the faults of a request as a service error, or nil for none. EC2 has its own codes for
// values that its model limits by length, range and pattern, so its operations check these limits.
func (sv *Service) refuse(faults []model.Fault) error {
	var broken []string
	code := ""
	for _, f := range faults {
		var err *Error
		switch {
		case f.Kind == model.Limit && sv.Protocol == "ec2":
			continue
		case f.Kind == model.Unknown:
			return sv.Dialect.unknownParam(f.Path)
		case f.Kind == model.Missing:
			err = sv.Dialect.MissingParam(f.Path)
		case f.Kind == model.Type && sv.Protocol != "ec2" && sv.Protocol != "query":
			return sv.Dialect.Malformed(f.Rule + " at " + f.Path)
		default:
			err = sv.Dialect.BadParam(f.Path, f.Value, f.Rule)
		}
		if sv.Protocol == "ec2" {
			return err // EC2 reports only one fault
		}
		_, why, _ := strings.Cut(err.Message, "detected: ")
		broken, code = append(broken, why), err.Code
	}
	switch len(broken) {
	case 0:
		return nil
	case 1:
		return Fail(code, "1 validation error detected: %s", broken[0])
	}
	return Fail(code, "%d validation errors detected: %s", len(broken), strings.Join(broken, "; "))
}

func LowerFirst(s string) string {
	if s == "" || s[0] < 'A' || s[0] > 'Z' {
		return s
	}
	return string(s[0]+'a'-'A') + s[1:]
}
