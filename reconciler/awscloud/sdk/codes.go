package sdk

import (
	"errors"
	"net/http"
	"strings"

	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/weir-gitops/weir/reconciler/observed"
)

// commonCodes are error codes that mean the same in every service.
var commonCodes = map[string]observed.ErrorKind{
	"RequestLimitExceeded":     observed.Throttled,
	"Throttling":               observed.Throttled,
	"ThrottlingException":      observed.Throttled,
	"ThrottledException":       observed.Throttled,
	"TooManyRequestsException": observed.Throttled,
	"EC2ThrottledException":    observed.Throttled,

	"InternalError":               observed.Transient,
	"InternalFailure":             observed.Transient,
	"InternalServerError":         observed.Transient,
	"InternalServerException":     observed.Transient,
	"ServiceFailure":              observed.Transient,
	"ServiceFailureException":     observed.Transient,
	"ServiceUnavailable":          observed.Transient,
	"ServiceUnavailableException": observed.Transient,
	"ServerException":             observed.Transient,
	"Unavailable":                 observed.Transient,
	"RequestTimeout":              observed.Transient,
	"RequestTimeoutException":     observed.Transient,

	"AccessDenied":          observed.Denied,
	"AccessDeniedException": observed.Denied,
	"UnauthorizedOperation": observed.Denied,
	"OptInRequired":         observed.Denied,

	"AuthFailure":                 observed.Credentials, // also for a region that the account has not enabled
	"ExpiredToken":                observed.Credentials,
	"ExpiredTokenException":       observed.Credentials,
	"RequestExpired":              observed.Credentials,
	"InvalidClientTokenId":        observed.Credentials,
	"SignatureDoesNotMatch":       observed.Credentials,
	"UnrecognizedClientException": observed.Credentials,
	"MissingAuthenticationToken":  observed.Credentials,
	"IncompleteSignature":         observed.Credentials,

	"IdempotentParameterMismatch": observed.TokenClash,

	"InvalidAction":               observed.Invalid,
	"InvalidParameterValue":       observed.Invalid,
	"InvalidParameterCombination": observed.Invalid,
	"MissingParameter":            observed.Invalid,
	"UnknownParameter":            observed.Invalid,
	"ValidationError":             observed.Invalid,
	"ValidationException":         observed.Invalid,
}

// serviceCodes contains the codes with a meaning in one service only.
var serviceCodes = map[string]map[string]observed.ErrorKind{
	"ec2": {
		"InvalidAMIID.Unavailable":                         observed.NotFound,
		"InvalidUserData.Malformed":                        observed.Invalid,
		"InvalidLaunchTemplateName.MalformedException":     observed.Invalid,
		"InvalidLaunchTemplateId.Malformed":                observed.Invalid,
		"InvalidLaunchTemplateId.VersionNotFound":          observed.NotFound,
		"InvalidLaunchTemplateName.AlreadyExistsException": observed.AlreadyThere,
		"InvalidLaunchTemplateName.NotFoundException":      observed.NotFound,
		"InvalidInstanceType":                              observed.Invalid,
		"InvalidAMIID.Malformed":                           observed.Invalid,
		"InvalidNextToken":                                 observed.Transient,
		"InvalidLaunchTemplateVersion.NotFound":            observed.NotFound,
		"VersionLimitExceeded":                             observed.Quota,
		"ResourceLimitExceeded":                            observed.Quota,
	},
	"autoscaling": {
		"AlreadyExists":                 observed.AlreadyThere,
		"ScalingActivityInProgress":     observed.Busy,
		"ResourceInUse":                 observed.Busy,
		"ResourceContention":            observed.Busy,
		"InstanceRefreshInProgress":     observed.Busy,
		"IdempotentCallInProgress":      observed.Busy,
		"ActiveInstanceRefreshNotFound": observed.NotFound,
		"ServiceLinkedRoleFailure":      observed.Transient,
		"LimitExceeded":                 observed.Quota,
		"IrreversibleInstanceRefresh":   observed.Invalid,
		"InvalidNextToken":              observed.Transient,
	},
	"eks": {
		"ResourceNotFoundException":            observed.NotFound,
		"NotFoundException":                    observed.NotFound,
		"ResourceInUseException":               observed.Busy,
		"ResourceLimitExceededException":       observed.Quota,
		"ResourcePropagationDelayException":    observed.Transient,
		"InvalidParameterException":            observed.Invalid,
		"InvalidRequestException":              observed.Invalid,
		"InvalidStateException":                observed.Busy,
		"BadRequestException":                  observed.Invalid,
		"ClientException":                      observed.Invalid,
		"UnsupportedAvailabilityZoneException": observed.Invalid,
	},
	"ssm": {
		"ParameterNotFound":        observed.NotFound,
		"ParameterVersionNotFound": observed.NotFound,

		"InvalidResourceId":                    observed.NotFound,
		"ParameterAlreadyExists":               observed.AlreadyThere,
		"TooManyUpdates":                       observed.Throttled,
		"ParameterLimitExceeded":               observed.Quota,
		"ParameterMaxVersionLimitExceeded":     observed.Quota,
		"TooManyTagsError":                     observed.Quota,
		"HierarchyLevelLimitExceededException": observed.Invalid,
		"HierarchyTypeMismatchException":       observed.Invalid,
		"InvalidKeyId":                         observed.Invalid,
		"UnsupportedParameterType":             observed.Invalid,
	},
	"iam": {
		"NoSuchEntity":          observed.NotFound,
		"NoSuchEntityException": observed.NotFound,
		"InvalidInput":          observed.Invalid,
	},
	"sts": {
		"RegionDisabledException": observed.Denied,
	},
	"kms": {
		"NotFoundException":          observed.NotFound,
		"InvalidArnException":        observed.NotFound, // not the ARN of a key
		"KMSInternalException":       observed.Transient,
		"DependencyTimeoutException": observed.Transient,
	},
	"elasticloadbalancing": {
		"TargetGroupNotFound":          observed.NotFound,
		"TargetGroupNotFoundException": observed.NotFound,
	},
	"servicequotas": {
		"NoSuchResourceException":  observed.NotFound,
		"ServiceException":         observed.Transient,
		"IllegalArgumentException": observed.Invalid,
	},
}

// kindOfStatus classifies an error by its HTTP status if no table contains its code.
func kindOfStatus(err error) observed.ErrorKind {
	var response *smithyhttp.ResponseError
	if !errors.As(err, &response) {
		return observed.Unknown
	}
	switch status := response.HTTPStatusCode(); {
	case status == http.StatusTooManyRequests:
		return observed.Throttled
	case status == http.StatusForbidden:
		return observed.Denied
	case status >= http.StatusInternalServerError:
		return observed.Transient
	}
	return observed.Unknown
}

// kindOf classifies by the code. It also uses the message if AWS uses one code for several errors, as in
// ValidationError of Auto Scaling and two codes of EKS.
// Assumed of AWS: codes-told-apart-by-text.
func kindOf(service, operation, code, message string) observed.ErrorKind {
	byMessage := observed.Unknown
	switch service {
	case "autoscaling":
		byMessage = kindOfAutoScaling(code, strings.ToLower(message))
	case "eks":
		byMessage = kindOfEKS(operation, code, strings.ToLower(message))
	}
	if byMessage != observed.Unknown {
		return byMessage
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
	return observed.Unknown
}

// kindOfAutoScaling distinguishes errors of Auto Scaling with the same code.
func kindOfAutoScaling(code, message string) observed.ErrorKind {
	switch {
	case code == "ValidationError" && strings.Contains(message, "active instance refresh with a desired configuration"):
		return observed.Busy
	case code == "ValidationError" && containsAny(message, "not found", "does not exist", "could not find the specified version"):
		return observed.NotFound
	case code == "ResourceInUse" && strings.Contains(message, "deletion protection"):
		return observed.Invalid // waiting does not help
	}
	return observed.Unknown
}

// kindOfEKS distinguishes errors of EKS with the same code.
func kindOfEKS(operation, code, message string) observed.ErrorKind {
	request := code == "InvalidRequestException"
	switch {
	case code == "ResourceInUseException" && strings.HasPrefix(operation, "Create"):
		return observed.AlreadyThere
	case !request && code != "InvalidParameterException":
	case containsAny(message, "not authorized to"):
		return observed.Denied // EKS called EC2 or IAM with the caller's permissions
	case containsAny(message, "clientrequesttoken", "client request token", "idempoten"):
		return observed.TokenClash
	case request && containsAny(message, "not active", "must be active", "in progress", "is currently", "status"):
		return observed.Busy
	}
	return observed.Unknown
}

// kindOfEC2 classifies an EC2 code by its parts.
// Assumed of AWS: quota-codes.
func kindOfEC2(code string) observed.ErrorKind {
	switch {
	case strings.HasPrefix(code, "Invalid") && (strings.HasSuffix(code, ".NotFound") || strings.HasSuffix(code, ".NotFoundException")):
		return observed.NotFound
	case strings.HasSuffix(code, "AlreadyExistsException"), strings.HasSuffix(code, ".Duplicate"):
		return observed.AlreadyThere
	case strings.HasSuffix(code, "LimitExceeded"), strings.HasSuffix(code, "LimitExceededException"):
		return observed.Quota
	case strings.HasPrefix(code, "Invalid"), strings.HasSuffix(code, "Malformed"):
		return observed.Invalid
	}
	return observed.Unknown
}

func containsAny(s string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}
