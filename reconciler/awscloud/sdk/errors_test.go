package sdk

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/weir-gitops/weir/reconciler/observed"
)

func TestClassify(t *testing.T) {
	api := func(code, message string) error { return &smithy.GenericAPIError{Code: code, Message: message} }
	status := func(n int, err error) error {
		return &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: &http.Response{StatusCode: n}}, Err: err}
	}
	tests := []struct {
		service, operation string
		err                error
		want               observed.ErrorKind
	}{
		{"ec2", "DescribeLaunchTemplates", api("InvalidLaunchTemplateId.NotFound", ""), observed.NotFound},
		{"ec2", "DescribeLaunchTemplates", api("InvalidLaunchTemplateName.NotFoundException", ""), observed.NotFound},
		{"ec2", "DescribeLaunchTemplateVersions", api("InvalidLaunchTemplateId.VersionNotFound", ""), observed.NotFound},
		{"ec2", "DescribeImages", api("InvalidAMIID.NotFound", ""), observed.NotFound},
		{"ec2", "DescribeImages", api("InvalidAMIID.Unavailable", ""), observed.NotFound},
		{"ec2", "CreateLaunchTemplate", api("InvalidLaunchTemplateName.AlreadyExistsException", ""), observed.AlreadyThere},
		{"ec2", "CreateLaunchTemplateVersion", api("IdempotentParameterMismatch", ""), observed.TokenClash},
		{"ec2", "CreateTags", api("RequestLimitExceeded", ""), observed.Throttled},
		{"ec2", "CreateTags", api("Throttling", ""), observed.Throttled},
		{"ec2", "CreateTags", api("Unavailable", ""), observed.Transient},
		{"ec2", "CreateTags", api("InternalError", ""), observed.Transient},
		{"ec2", "CreateTags", api("UnauthorizedOperation", ""), observed.Denied},
		{"ec2", "CreateTags", api("AuthFailure", ""), observed.Credentials},
		{"ec2", "CreateTags", api("ExpiredToken", ""), observed.Credentials},
		{"ec2", "CreateTags", api("RequestExpired", ""), observed.Credentials},
		{"ec2", "CreateLaunchTemplate", api("LaunchTemplateLimitExceeded", ""), observed.Quota},
		{"ec2", "CreateLaunchTemplateVersion", api("VersionLimitExceeded", ""), observed.Quota},
		{"ec2", "CreateLaunchTemplate", api("InvalidUserData.Malformed", ""), observed.Invalid},
		{"ec2", "CreateLaunchTemplate", api("InvalidParameterValue", ""), observed.Invalid},
		{"ec2", "CreateLaunchTemplate", api("InvalidLaunchTemplateName.MalformedException", ""), observed.Invalid},
		{"ec2", "CreateLaunchTemplate", api("MissingParameter", ""), observed.Invalid},

		{"autoscaling", "CreateAutoScalingGroup", api("AlreadyExists", ""), observed.AlreadyThere},
		{"autoscaling", "UpdateAutoScalingGroup", api("ValidationError", "AutoScalingGroup name not found - null"), observed.NotFound},
		{"autoscaling", "CreateAutoScalingGroup", api("ValidationError", "Could not find the specified version for the launch template"), observed.NotFound},
		{"autoscaling", "CreateAutoScalingGroup", api("ValidationError", "Max bound, 1, must be greater than or equal to min bound, 2"), observed.Invalid},
		{"autoscaling", "DeleteAutoScalingGroup", api("ScalingActivityInProgress", ""), observed.Busy},
		{"autoscaling", "DeleteAutoScalingGroup", api("ResourceInUse", ""), observed.Busy},
		{"autoscaling", "DeleteAutoScalingGroup", api("ResourceInUse", "The group has deletion protection enabled."), observed.Invalid},
		{"autoscaling", "UpdateAutoScalingGroup", status(500, api("ResourceContention", "")), observed.Busy},
		{"autoscaling", "StartInstanceRefresh", api("InstanceRefreshInProgress", ""), observed.Busy},
		{"autoscaling", "StartInstanceRefresh", api("ServiceLinkedRoleFailure", ""), observed.Transient},
		{"autoscaling", "CancelInstanceRefresh", api("ActiveInstanceRefreshNotFound", ""), observed.NotFound},
		{"autoscaling", "CreateAutoScalingGroup", api("LimitExceeded", ""), observed.Quota},
		{"autoscaling", "DescribeAutoScalingGroups", api("Throttling", "Rate exceeded"), observed.Throttled},
		{"autoscaling", "RollbackInstanceRefresh", api("IrreversibleInstanceRefresh", ""), observed.Invalid},

		{"eks", "DescribeNodegroup", api("ResourceNotFoundException", ""), observed.NotFound},
		{"eks", "TagResource", api("NotFoundException", ""), observed.NotFound},
		{"eks", "CreateNodegroup", api("ResourceInUseException", ""), observed.AlreadyThere},
		{"eks", "UpdateNodegroupConfig", api("ResourceInUseException", ""), observed.Busy},
		{"eks", "DeleteNodegroup", api("ResourceInUseException", ""), observed.Busy},
		{"eks", "CreateNodegroup", api("ResourceLimitExceededException", ""), observed.Quota},
		{"eks", "CreateNodegroup", api("ResourcePropagationDelayException", ""), observed.Transient},
		{"eks", "UpdateNodegroupVersion", api("InvalidRequestException", "Nodegroup is not ACTIVE"), observed.Busy},
		{"eks", "UpdateNodegroupVersion", api("InvalidRequestException", "You cannot specify a Kubernetes version"), observed.Invalid},
		{"eks", "CreateNodegroup", api("InvalidParameterException", "Subnets are not tagged"), observed.Invalid},
		{"eks", "CreateNodegroup", api("InvalidParameterException", "clientRequestToken was used with other parameters"), observed.TokenClash},
		{"eks", "CreateNodegroup", api("InvalidRequestException", "You are not authorized to launch instances with this launch template. Encoded authorization failure message: x"), observed.Denied},
		{"eks", "CreateNodegroup", api("InvalidParameterException", "User: arn:aws:iam::1:user/x is not authorized to perform: iam:ListAttachedRolePolicies on resource: role r"), observed.Denied},
		{"eks", "ListNodegroups", api("TooManyRequestsException", ""), observed.Throttled},
		{"eks", "ListNodegroups", api("ServerException", ""), observed.Transient},
		{"eks", "ListNodegroups", api("AccessDeniedException", ""), observed.Denied},
		{"eks", "ListNodegroups", api("UnrecognizedClientException", ""), observed.Credentials},

		{"ssm", "GetParameter", api("ParameterNotFound", ""), observed.NotFound},
		{"ssm", "GetParameters", api("ValidationException", ""), observed.Invalid},
		{"ssm", "GetParameters", api("InternalServerError", ""), observed.Transient},
		{"iam", "GetRole", api("NoSuchEntity", ""), observed.NotFound},
		{"sts", "GetCallerIdentity", api("InvalidClientTokenId", ""), observed.Credentials},

		{"ec2", "CreateTags", api("SomethingNew", ""), observed.Unknown},
		{"ec2", "CreateTags", status(503, api("SomethingNew", "")), observed.Transient},
		{"ec2", "CreateTags", status(429, api("SomethingNew", "")), observed.Throttled},
		{"ec2", "CreateTags", status(403, api("SomethingNew", "")), observed.Denied},
		{"ec2", "CreateTags", status(502, &smithy.DeserializationError{Err: errors.New("html")}), observed.Transient},
		{"ec2", "CreateTags", status(200, &smithy.DeserializationError{Err: errors.New("html")}), observed.Unknown},
		{"ec2", "CreateTags", &smithyhttp.RequestSendError{Err: errors.New("reset")}, observed.Transient},
		{"ec2", "CreateTags", &net.OpError{Op: "dial", Err: errors.New("refused")}, observed.Transient},
		{"ec2", "CreateTags", context.Canceled, observed.Cancelled},
		{"ec2", "CreateTags", &waitError{context.DeadlineExceeded}, observed.Cancelled},
		{"ec2", "CreateTags", smithy.InvalidParamsError{}, observed.Invalid},
		{"ec2", "CreateTags", &credentialsError{err: errors.New("no provider")}, observed.Credentials},
		{"ec2", "CreateTags", &credentialsError{role: "r", err: api("AccessDenied", "")}, observed.Denied},
		{"ec2", "CreateTags", &credentialsError{role: "r", err: api("Throttling", "")}, observed.Throttled},
		{"ec2", "CreateTags", &credentialsError{role: "r", err: api("RegionDisabledException", "")}, observed.Denied},
		{"ec2", "CreateTags", errors.New("whatever"), observed.Unknown},
	}
	for _, tt := range tests {
		err := fmt.Errorf("operation error: %w", tt.err)
		if got := Classify(tt.service, tt.operation, err); got.Kind != tt.want {
			t.Errorf("%s:%s: %v is %s, want %s", tt.service, tt.operation, tt.err, got.Kind, tt.want)
		}
	}
	if Classify("ec2", "CreateTags", nil) != nil {
		t.Error("nil is an error")
	}
	known := &observed.Error{Kind: observed.Busy}
	if Classify("ec2", "CreateTags", fmt.Errorf("x: %w", known)) != known {
		t.Error("a classified error is classified again")
	}
}

func TestDeniedNamesTheAction(t *testing.T) {
	tests := map[string]string{
		"": "needs autoscaling:CreateAutoScalingGroup",
		"User: arn:aws:iam::1:user/x is not authorized to perform: iam:PassRole on resource: r": "needs iam:PassRole: User",
		"You are not authorized to perform this operation.":                                     "needs autoscaling:CreateAutoScalingGroup: You are",
		"You are not authorized to use launch template: lt-1":                                   "needs ec2:RunInstances, ec2:CreateTags or iam:PassRole, for what the launch template names: You are",
	}
	for message, want := range tests {
		e := Classify("autoscaling", "CreateAutoScalingGroup", &smithy.GenericAPIError{Code: "AccessDenied", Message: message})
		if !strings.HasPrefix(e.Message, want) {
			t.Errorf("%q became %q, want %q…", message, e.Message, want)
		}
	}
	e := Classify("ec2", "DescribeImages", &credentialsError{role: "r", err: &smithy.GenericAPIError{Code: "AccessDenied"}})
	if e.Service != "sts" || !strings.HasPrefix(e.Message, "needs sts:AssumeRole") {
		t.Errorf("a refused role became %+v", e)
	}
}

// A launch that EKS or Auto Scaling tried is refused in EC2's words, which do not say
// who asked for tags in the metadata.
func TestARefusedTagIsExplained(t *testing.T) {
	e := Classify("eks", "CreateNodegroup", &smithy.GenericAPIError{Code: "InvalidRequestException",
		Message: `'alpha.eksctl.io/nodegroup-name' is not a valid tag key. Tag keys must match pattern ([0-9a-zA-Z\\-_+=,.@:]{1,255}), and must not be a reserved name ('.', '..', '_index')`})
	if e.Kind != observed.Invalid || !strings.Contains(e.Message, "the account's default in the region") || !strings.HasPrefix(e.Message, "'alpha.eksctl.io/nodegroup-name' is not") {
		t.Errorf("%s: %s", e.Kind, e.Message)
	}
}

// Only AWS's encoded message leads to the statement that denied the call, so weir keeps it whole, and cuts a blob out of any other message.
func TestDeniedKeepsTheEncodedMessage(t *testing.T) {
	encoded := strings.Repeat("SAh2nDlM_rJs7hFuZ5hszTmXB0Cpmz2KENOOFaiMYyH7cyIdM-", 40)
	e := Classify("eks", "CreateNodegroup", &smithy.GenericAPIError{Code: "InvalidRequestException",
		Message: "You are not authorized to launch instances with this launch template. Encoded authorization failure message: " + encoded})
	if e.Kind != observed.Denied || !strings.HasPrefix(e.Message, "needs ec2:RunInstances, ec2:CreateTags or iam:PassRole") ||
		!strings.Contains(e.Message, encoded) || !strings.Contains(e.Message, "decode-authorization-message") {
		t.Errorf("%s: %s", e.Kind, e.Message)
	}
}

// Nobody answers: the message is the cause, with the host, not the SDK's layers.
func TestUnreachable(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	_, err := Open(t.Context(), Options{Region: "eu-west-1", EndpointURL: server.URL, Embedded: true, Attempts: 1})
	var e *observed.Error
	host := strings.TrimPrefix(server.URL, "http://")
	if !errors.As(err, &e) || e.Code != "ConnectionFailed" || e.Kind != observed.Transient || e.Message != "dial tcp "+host+": connect: connection refused" {
		t.Errorf("%v", err)
	}
}
