package cloudtest

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

func refusalContracts() []contract {
	needs := []Capability{Refusals}
	return []contract{
		{"an unknown action of EC2", needs, unknownEC2Action},
		{"an unknown action of Auto Scaling", needs, unknownAutoScalingAction},
		{"an unknown parameter of EC2", needs, unknownEC2Parameter},
		{"an unknown filter of EC2", needs, unknownEC2Filter},
		{"an unknown target of SSM", needs, unknownTarget},
		{"an unknown path of EKS", needs, unknownPath},
		{"a request that nobody signed", needs, unsigned},
	}
}

// raw sends a request that no client would build. It is signed for a service, or unsigned if the service is
// empty.
func (e *env) raw(service, method, path, contentType, body string, header ...string) (status int, answer string) {
	e.Helper()
	r, err := http.NewRequestWithContext(e.ctx, method, strings.TrimSuffix(e.h.Endpoint, "/")+path, strings.NewReader(body))
	e.must(err)
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	if service != "" {
		credentials, err := e.cfg.Credentials.Retrieve(e.ctx)
		e.must(err)
		sum := sha256.Sum256([]byte(body))
		e.must(v4.NewSigner().SignHTTP(e.ctx, credentials, r, hex.EncodeToString(sum[:]), service, e.h.Region, time.Now()))
	}
	resp, err := e.cfg.HTTPClient.Do(r)
	e.must(err)
	raw, err := io.ReadAll(resp.Body)
	e.must(err)
	e.must(resp.Body.Close())
	return resp.StatusCode, string(raw)
}

const form = "application/x-www-form-urlencoded; charset=utf-8"

// says checks an answer's status and that it contains all parts.
func (e *env) says(status int, answer string, want int, parts ...string) {
	e.Helper()
	if status != want {
		e.Errorf("status %d, want %d: %s", status, want, answer)
	}
	for _, p := range parts {
		if !strings.Contains(answer, p) {
			e.Errorf("the answer lacks %s: %s", p, answer)
		}
	}
}

func unknownEC2Action(e *env) {
	status, answer := e.raw("ec2", http.MethodPost, "/", form, "Action=DescribeWeirs&Version=2016-11-15")
	e.says(status, answer, http.StatusBadRequest, "<Response><Errors><Error><Code>InvalidAction</Code>")
}

func unknownAutoScalingAction(e *env) {
	status, answer := e.raw("autoscaling", http.MethodPost, "/", form, "Action=DescribeWeirs&Version=2011-01-01")
	e.says(status, answer, http.StatusBadRequest, "<ErrorResponse", "<Code>InvalidAction</Code>")
}

func unknownEC2Parameter(e *env) {
	status, answer := e.raw("ec2", http.MethodPost, "/", form, "Action=DescribeLaunchTemplates&Version=2016-11-15&Weir=1")
	e.says(status, answer, http.StatusBadRequest, "<Code>UnknownParameter</Code>")
}

func unknownEC2Filter(e *env) {
	status, answer := e.raw("ec2", http.MethodPost, "/", form, "Action=DescribeLaunchTemplates&Version=2016-11-15&Filter.1.Name=weir&Filter.1.Value.1=1")
	e.says(status, answer, http.StatusBadRequest, "<Code>InvalidParameterValue</Code>")
}

func unknownTarget(e *env) {
	status, answer := e.raw("ssm", http.MethodPost, "/", "application/x-amz-json-1.1", "{}", "X-Amz-Target", "AmazonSSM.DescribeWeirs")
	if status != http.StatusBadRequest && status != http.StatusNotFound {
		e.Errorf("status %d: %s", status, answer)
	}
	e.says(status, answer, status, "UnknownOperationException")
}

func unknownPath(e *env) {
	status, answer := e.raw("eks", http.MethodGet, "/weirs", "", "")
	if status < 400 || status > 499 || strings.Contains(strings.ToLower(answer), "<html") {
		e.Errorf("status %d: %s", status, answer)
	}
}

func unsigned(e *env) {
	status, answer := e.raw("", http.MethodPost, "/", form, "Action=DescribeLaunchTemplates&Version=2016-11-15")
	if status < 400 || status > 499 || strings.Contains(strings.ToLower(answer), "<html") {
		e.Errorf("status %d: %s", status, answer)
	}
}
