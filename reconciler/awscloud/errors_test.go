package awscloud

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
	"github.com/weir-gitops/weir/reconciler/plan"
)

func TestClassify(t *testing.T) {
	api := func(code, message string) error { return &smithy.GenericAPIError{Code: code, Message: message} }
	status := func(n int, err error) error {
		return &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: &http.Response{StatusCode: n}}, Err: err}
	}
	tests := []struct {
		service, operation string
		err                error
		want               plan.ErrorKind
	}{
		{"ec2", "DescribeLaunchTemplates", api("InvalidLaunchTemplateId.NotFound", ""), plan.NotFound},
		{"ec2", "DescribeLaunchTemplates", api("InvalidLaunchTemplateName.NotFoundException", ""), plan.NotFound},
		{"ec2", "DescribeLaunchTemplateVersions", api("InvalidLaunchTemplateId.VersionNotFound", ""), plan.NotFound},
		{"ec2", "DescribeImages", api("InvalidAMIID.NotFound", ""), plan.NotFound},
		{"ec2", "DescribeImages", api("InvalidAMIID.Unavailable", ""), plan.NotFound},
		{"ec2", "CreateLaunchTemplate", api("InvalidLaunchTemplateName.AlreadyExistsException", ""), plan.AlreadyThere},
		{"ec2", "CreateLaunchTemplateVersion", api("IdempotentParameterMismatch", ""), plan.TokenClash},
		{"ec2", "CreateTags", api("RequestLimitExceeded", ""), plan.Throttled},
		{"ec2", "CreateTags", api("Throttling", ""), plan.Throttled},
		{"ec2", "CreateTags", api("Unavailable", ""), plan.Transient},
		{"ec2", "CreateTags", api("InternalError", ""), plan.Transient},
		{"ec2", "CreateTags", api("UnauthorizedOperation", ""), plan.Denied},
		{"ec2", "CreateTags", api("AuthFailure", ""), plan.Credentials},
		{"ec2", "CreateTags", api("ExpiredToken", ""), plan.Credentials},
		{"ec2", "CreateTags", api("RequestExpired", ""), plan.Credentials},
		{"ec2", "CreateLaunchTemplate", api("LaunchTemplateLimitExceeded", ""), plan.Quota},
		{"ec2", "CreateLaunchTemplateVersion", api("VersionLimitExceeded", ""), plan.Quota},
		{"ec2", "CreateLaunchTemplate", api("InvalidUserData.Malformed", ""), plan.Invalid},
		{"ec2", "CreateLaunchTemplate", api("InvalidParameterValue", ""), plan.Invalid},
		{"ec2", "CreateLaunchTemplate", api("InvalidLaunchTemplateName.MalformedException", ""), plan.Invalid},
		{"ec2", "CreateLaunchTemplate", api("MissingParameter", ""), plan.Invalid},

		{"autoscaling", "CreateAutoScalingGroup", api("AlreadyExists", ""), plan.AlreadyThere},
		{"autoscaling", "UpdateAutoScalingGroup", api("ValidationError", "AutoScalingGroup name not found - null"), plan.NotFound},
		{"autoscaling", "CreateAutoScalingGroup", api("ValidationError", "Could not find the specified version for the launch template"), plan.NotFound},
		{"autoscaling", "CreateAutoScalingGroup", api("ValidationError", "Max bound, 1, must be greater than or equal to min bound, 2"), plan.Invalid},
		{"autoscaling", "DeleteAutoScalingGroup", api("ScalingActivityInProgress", ""), plan.Busy},
		{"autoscaling", "DeleteAutoScalingGroup", api("ResourceInUse", ""), plan.Busy},
		{"autoscaling", "DeleteAutoScalingGroup", api("ResourceInUse", "The group has deletion protection enabled."), plan.Invalid},
		{"autoscaling", "UpdateAutoScalingGroup", status(500, api("ResourceContention", "")), plan.Busy},
		{"autoscaling", "StartInstanceRefresh", api("InstanceRefreshInProgress", ""), plan.Busy},
		{"autoscaling", "StartInstanceRefresh", api("ServiceLinkedRoleFailure", ""), plan.Transient},
		{"autoscaling", "CancelInstanceRefresh", api("ActiveInstanceRefreshNotFound", ""), plan.NotFound},
		{"autoscaling", "CreateAutoScalingGroup", api("LimitExceeded", ""), plan.Quota},
		{"autoscaling", "DescribeAutoScalingGroups", api("Throttling", "Rate exceeded"), plan.Throttled},
		{"autoscaling", "RollbackInstanceRefresh", api("IrreversibleInstanceRefresh", ""), plan.Invalid},

		{"eks", "DescribeNodegroup", api("ResourceNotFoundException", ""), plan.NotFound},
		{"eks", "TagResource", api("NotFoundException", ""), plan.NotFound},
		{"eks", "CreateNodegroup", api("ResourceInUseException", ""), plan.AlreadyThere},
		{"eks", "UpdateNodegroupConfig", api("ResourceInUseException", ""), plan.Busy},
		{"eks", "DeleteNodegroup", api("ResourceInUseException", ""), plan.Busy},
		{"eks", "CreateNodegroup", api("ResourceLimitExceededException", ""), plan.Quota},
		{"eks", "CreateNodegroup", api("ResourcePropagationDelayException", ""), plan.Transient},
		{"eks", "UpdateNodegroupVersion", api("InvalidRequestException", "Nodegroup is not ACTIVE"), plan.Busy},
		{"eks", "UpdateNodegroupVersion", api("InvalidRequestException", "You cannot specify a Kubernetes version"), plan.Invalid},
		{"eks", "CreateNodegroup", api("InvalidParameterException", "Subnets are not tagged"), plan.Invalid},
		{"eks", "CreateNodegroup", api("InvalidParameterException", "clientRequestToken was used with other parameters"), plan.TokenClash},
		{"eks", "CreateNodegroup", api("InvalidRequestException", "You are not authorized to launch instances with this launch template. Encoded authorization failure message: x"), plan.Denied},
		{"eks", "CreateNodegroup", api("InvalidParameterException", "User: arn:aws:iam::1:user/x is not authorized to perform: iam:ListAttachedRolePolicies on resource: role r"), plan.Denied},
		{"eks", "ListNodegroups", api("TooManyRequestsException", ""), plan.Throttled},
		{"eks", "ListNodegroups", api("ServerException", ""), plan.Transient},
		{"eks", "ListNodegroups", api("AccessDeniedException", ""), plan.Denied},
		{"eks", "ListNodegroups", api("UnrecognizedClientException", ""), plan.Credentials},

		{"ssm", "GetParameter", api("ParameterNotFound", ""), plan.NotFound},
		{"ssm", "GetParameters", api("ValidationException", ""), plan.Invalid},
		{"ssm", "GetParameters", api("InternalServerError", ""), plan.Transient},
		{"iam", "GetRole", api("NoSuchEntity", ""), plan.NotFound},
		{"sts", "GetCallerIdentity", api("InvalidClientTokenId", ""), plan.Credentials},

		{"ec2", "CreateTags", api("SomethingNew", ""), plan.Unknown},
		{"ec2", "CreateTags", status(503, api("SomethingNew", "")), plan.Transient},
		{"ec2", "CreateTags", status(429, api("SomethingNew", "")), plan.Throttled},
		{"ec2", "CreateTags", status(403, api("SomethingNew", "")), plan.Denied},
		{"ec2", "CreateTags", status(502, &smithy.DeserializationError{Err: errors.New("html")}), plan.Transient},
		{"ec2", "CreateTags", status(200, &smithy.DeserializationError{Err: errors.New("html")}), plan.Unknown},
		{"ec2", "CreateTags", &smithyhttp.RequestSendError{Err: errors.New("reset")}, plan.Transient},
		{"ec2", "CreateTags", &net.OpError{Op: "dial", Err: errors.New("refused")}, plan.Transient},
		{"ec2", "CreateTags", context.Canceled, plan.Cancelled},
		{"ec2", "CreateTags", &waitError{context.DeadlineExceeded}, plan.Cancelled},
		{"ec2", "CreateTags", smithy.InvalidParamsError{}, plan.Invalid},
		{"ec2", "CreateTags", &credentialsError{err: errors.New("no provider")}, plan.Credentials},
		{"ec2", "CreateTags", &credentialsError{role: "r", err: api("AccessDenied", "")}, plan.Denied},
		{"ec2", "CreateTags", &credentialsError{role: "r", err: api("Throttling", "")}, plan.Throttled},
		{"ec2", "CreateTags", &credentialsError{role: "r", err: api("RegionDisabledException", "")}, plan.Denied},
		{"ec2", "CreateTags", errors.New("whatever"), plan.Unknown},
	}
	for _, tt := range tests {
		err := fmt.Errorf("operation error: %w", tt.err)
		if got := classify(tt.service, tt.operation, err); got.Kind != tt.want {
			t.Errorf("%s:%s: %v is %s, want %s", tt.service, tt.operation, tt.err, got.Kind, tt.want)
		}
	}
	if classify("ec2", "CreateTags", nil) != nil {
		t.Error("nil is an error")
	}
	known := &plan.Error{Kind: plan.Busy}
	if classify("ec2", "CreateTags", fmt.Errorf("x: %w", known)) != known {
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
		e := classify("autoscaling", "CreateAutoScalingGroup", &smithy.GenericAPIError{Code: "AccessDenied", Message: message})
		if !strings.HasPrefix(e.Message, want) {
			t.Errorf("%q became %q, want %q…", message, e.Message, want)
		}
	}
	e := classify("ec2", "DescribeImages", &credentialsError{role: "r", err: &smithy.GenericAPIError{Code: "AccessDenied"}})
	if e.Service != "sts" || !strings.HasPrefix(e.Message, "needs sts:AssumeRole") {
		t.Errorf("a refused role became %+v", e)
	}
}

// A launch that EKS or Auto Scaling tried is refused in EC2's words, which do not say
// who asked for tags in the metadata.
func TestARefusedTagIsExplained(t *testing.T) {
	e := classify("eks", "CreateNodegroup", &smithy.GenericAPIError{Code: "InvalidRequestException",
		Message: `'alpha.eksctl.io/nodegroup-name' is not a valid tag key. Tag keys must match pattern ([0-9a-zA-Z\\-_+=,.@:]{1,255}), and must not be a reserved name ('.', '..', '_index')`})
	if e.Kind != plan.Invalid || !strings.Contains(e.Message, "by the account's default in the region") || !strings.HasPrefix(e.Message, "'alpha.eksctl.io/nodegroup-name' is not") {
		t.Errorf("%s: %s", e.Kind, e.Message)
	}
}

// What AWS encoded is the only way to the statement that denied the call, so it is
// kept whole, where a blob in any other message is cut out.
func TestDeniedKeepsTheEncodedMessage(t *testing.T) {
	encoded := strings.Repeat("SAh2nDlM_rJs7hFuZ5hszTmXB0Cpmz2KENOOFaiMYyH7cyIdM-", 40)
	e := classify("eks", "CreateNodegroup", &smithy.GenericAPIError{Code: "InvalidRequestException",
		Message: "You are not authorized to launch instances with this launch template. Encoded authorization failure message: " + encoded})
	if e.Kind != plan.Denied || !strings.HasPrefix(e.Message, "needs ec2:RunInstances, ec2:CreateTags or iam:PassRole") ||
		!strings.Contains(e.Message, encoded) || !strings.Contains(e.Message, "decode-authorization-message") {
		t.Errorf("%s: %s", e.Kind, e.Message)
	}
}

// Nobody answers: the message is the cause, with the host, not the SDK's layers.
func TestUnreachable(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	_, err := Open(t.Context(), Options{Region: "eu-west-1", EndpointURL: server.URL, Embedded: true, Attempts: 1})
	var e *plan.Error
	host := strings.TrimPrefix(server.URL, "http://")
	if !errors.As(err, &e) || e.Code != "ConnectionFailed" || e.Kind != plan.Transient || e.Message != "dial tcp "+host+": connect: connection refused" {
		t.Errorf("%v", err)
	}
}
