package awsemu

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/model"
)

// apiError is an error answer in AWS's terms. The protocol decides how it looks
// on the wire.
type apiError struct {
	Code    string
	Message string
	Status  int            // HTTP status; 0: the usual one of the code
	Extra   map[string]any // further members of a JSON error, such as clusterName
}

// Error implements error.
func (e *apiError) Error() string { return e.Code + ": " + e.Message }

// fail returns an error answer with the usual status of its code.
func fail(code, format string, args ...any) *apiError {
	return &apiError{Code: code, Message: fmt.Sprintf(format, args...)}
}

// with adds a member to a JSON error.
func (e *apiError) with(name string, value any) *apiError {
	if e.Extra == nil {
		e.Extra = map[string]any{}
	}
	e.Extra[name] = value
	return e
}

// status is the HTTP status of the error: per code where AWS differs from 400.
func (e *apiError) status() int {
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

// dialect is how a service words the errors that every service has.
type dialect struct {
	missingAuth    func() *apiError
	invalidKey     func() *apiError
	expiredKey     func() *apiError
	throttled      func(op string) *apiError
	unknownAction  func(op, version string) *apiError
	unknownParam   func(name string) *apiError
	missingParam   func(name string) *apiError
	badParam       func(name, value, why string) *apiError
	badToken       func() *apiError
	tokenMismatch  func() *apiError
	tooLarge       func() *apiError
	malformed      func(why string) *apiError
	internalFailed func() *apiError
}

// ec2Dialect words errors as EC2 does.
func ec2Dialect() dialect {
	return dialect{
		missingAuth: func() *apiError {
			return fail("AuthFailure", "AWS was not able to validate the provided access credentials")
		},
		invalidKey: func() *apiError {
			return fail("AuthFailure", "AWS was not able to validate the provided access credentials")
		},
		expiredKey: func() *apiError {
			return &apiError{Code: "RequestExpired", Message: "Request has expired."}
		},
		throttled: func(string) *apiError { return fail("RequestLimitExceeded", "Request limit exceeded.") },
		unknownAction: func(op, _ string) *apiError {
			return fail("InvalidAction", "The action %s is not valid for this web service.", op)
		},
		unknownParam: func(name string) *apiError {
			return fail("UnknownParameter", "The parameter %s is not recognized", name)
		},
		missingParam: func(name string) *apiError {
			return fail("MissingParameter", "The request must contain the parameter %s", name)
		},
		badParam: func(name, value, why string) *apiError {
			return fail("InvalidParameterValue", "Value (%s) for parameter %s is invalid. %s", value, name, why)
		},
		badToken: func() *apiError {
			return fail("InvalidParameterValue", "Unable to parse pagination token")
		},
		tokenMismatch: func() *apiError {
			return fail("IdempotentParameterMismatch", "The client token you have provided is associated with a resource that was made with different parameters.")
		},
		tooLarge:       func() *apiError { return fail("RequestEntityTooLarge", "The request is larger than 1 MiB") },
		malformed:      func(why string) *apiError { return fail("MalformedQueryString", "%s", why) },
		internalFailed: func() *apiError { return fail("InternalError", "An internal error has occurred") },
	}
}

// queryDialect words errors as Auto Scaling, STS and IAM do.
func queryDialect() dialect {
	return dialect{
		missingAuth: func() *apiError {
			return fail("MissingAuthenticationToken", "Request is missing Authentication Token")
		},
		invalidKey: func() *apiError {
			return fail("InvalidClientTokenId", "The security token included in the request is invalid.")
		},
		expiredKey: func() *apiError {
			return fail("ExpiredToken", "The security token included in the request is expired")
		},
		throttled: func(string) *apiError { return fail("Throttling", "Rate exceeded") },
		unknownAction: func(op, version string) *apiError {
			return fail("InvalidAction", "Could not find operation %s for version %s", op, version)
		},
		unknownParam: func(name string) *apiError {
			return fail("MalformedInput", "Unexpected parameter: %s", name)
		},
		missingParam: func(name string) *apiError {
			return fail("ValidationError", "1 validation error detected: Value null at '%s' failed to satisfy constraint: Member must not be null", lowerFirst(name))
		},
		badParam: func(name, value, why string) *apiError {
			return fail("ValidationError", "1 validation error detected: Value '%s' at '%s' failed to satisfy constraint: %s", value, lowerFirst(name), why)
		},
		badToken: func() *apiError { return fail("InvalidNextToken", "The NextToken value is not valid.") },
		tokenMismatch: func() *apiError {
			return fail("IdempotentParameterMismatch", "The client token was used before with different parameters.")
		},
		tooLarge:       func() *apiError { return fail("RequestEntityTooLarge", "The request is larger than 1 MiB") },
		malformed:      func(why string) *apiError { return fail("MalformedInput", "%s", why) },
		internalFailed: func() *apiError { return fail("InternalFailure", "An internal failure has occurred") },
	}
}

// jsonDialect words errors as SSM and EKS do; invalid names the service's code
// for a request that breaks a rule.
func jsonDialect(invalid string) dialect {
	return dialect{
		missingAuth: func() *apiError {
			return fail("MissingAuthenticationTokenException", "Missing Authentication Token")
		},
		invalidKey: func() *apiError {
			return fail("UnrecognizedClientException", "The security token included in the request is invalid.")
		},
		expiredKey: func() *apiError {
			return fail("ExpiredTokenException", "The security token included in the request is expired")
		},
		throttled: func(string) *apiError {
			return &apiError{Code: "ThrottlingException", Message: "Rate exceeded", Status: http.StatusTooManyRequests}
		},
		unknownAction: func(op, _ string) *apiError {
			return &apiError{Code: "UnknownOperationException", Message: "Unknown operation " + op, Status: http.StatusNotFound}
		},
		unknownParam: func(name string) *apiError { return fail(invalid, "Unknown parameter: %s", name) },
		missingParam: func(name string) *apiError {
			return fail(invalid, "1 validation error detected: Value null at '%s' failed to satisfy constraint: Member must not be null", name)
		},
		badParam: func(name, value, why string) *apiError {
			return fail(invalid, "1 validation error detected: Value '%s' at '%s' failed to satisfy constraint: %s", value, name, why)
		},
		badToken: func() *apiError { return fail(invalid, "Invalid token") },
		tokenMismatch: func() *apiError {
			return fail(invalid, "The client request token was used before with different parameters")
		},
		tooLarge:       func() *apiError { return fail("RequestEntityTooLarge", "The request is larger than 1 MiB") },
		malformed:      func(why string) *apiError { return fail("SerializationException", "%s", why) },
		internalFailed: func() *apiError { return fail("ServerException", "An internal failure has occurred") },
	}
}

// refuse words the faults of a request as the service does, nil for none. EC2 has
// codes of its own for what its model bounds by length, range and pattern: its
// operations check that.
func (sv *service) refuse(faults []model.Fault) error {
	var broken []string
	code := ""
	for _, f := range faults {
		var err *apiError
		switch {
		case f.Kind == model.Limit && sv.Protocol == "ec2":
			continue
		case f.Kind == model.Unknown:
			return sv.dialect.unknownParam(f.Path)
		case f.Kind == model.Missing:
			err = sv.dialect.missingParam(f.Path)
		case f.Kind == model.Type && sv.Protocol != "ec2" && sv.Protocol != "query":
			return sv.dialect.malformed(f.Rule + " at " + f.Path)
		default:
			err = sv.dialect.badParam(f.Path, f.Value, f.Rule)
		}
		if sv.Protocol == "ec2" {
			return err // EC2 tells of one fault
		}
		_, why, _ := strings.Cut(err.Message, "detected: ")
		broken, code = append(broken, why), err.Code
	}
	switch len(broken) {
	case 0:
		return nil
	case 1:
		return fail(code, "1 validation error detected: %s", broken[0])
	}
	return fail(code, "%d validation errors detected: %s", len(broken), strings.Join(broken, "; "))
}

func lowerFirst(s string) string {
	if s == "" || s[0] < 'A' || s[0] > 'Z' {
		return s
	}
	return string(s[0]+'a'-'A') + s[1:]
}
