package awsemu

import (
	"encoding/json"
	"encoding/xml"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/awsemu/model"
)

// raw sends a request without an SDK and returns status, body and header.
func raw(t *testing.T, s *Server, method, path, scope, body string, header map[string]string) (int, string, http.Header) {
	t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if scope != "" {
		r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AKIA/20260301/"+scope+"/aws4_request, SignedHeaders=host, Signature=00")
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	for name, value := range header {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	data, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, string(data), w.Header()
}

func newServer(t *testing.T) *Server {
	t.Helper()
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestErrorEnvelopes wants each protocol's own envelope for what every service
// can answer.
func TestErrorEnvelopes(t *testing.T) {
	type call struct {
		method, path, scope, body string
		header                    map[string]string
	}
	target := func(op string) map[string]string {
		return map[string]string{"X-Amz-Target": "AmazonSSM." + op, "Content-Type": "application/x-amz-json-1.1"}
	}
	ec2Scope, stsScope := "eu-west-1/ec2", "eu-west-1/sts"
	tests := []struct {
		name   string
		call   call
		status int
		code   string
	}{
		{"ec2 without signature", call{"POST", "/", "", "Action=DescribeVpcs&Version=2016-11-15", nil}, 401, "AuthFailure"},
		{"ec2 in no region", call{"POST", "/", "eu-wset-1/ec2", "Action=DescribeVpcs&Version=2016-11-15", nil}, 401, "AuthFailure"},
		{"ec2 unknown action", call{"POST", "/", ec2Scope, "Action=RequestSpotFleet&Version=2016-11-15", nil}, 400, "InvalidAction"},
		{"ec2 other version", call{"POST", "/", ec2Scope, "Action=DescribeVpcs&Version=2014-01-01", nil}, 400, "InvalidAction"},
		{"ec2 unknown parameter", call{"POST", "/", ec2Scope, "Action=DescribeVpcs&Version=2016-11-15&Colour=red", nil}, 400, "UnknownParameter"},
		{"ec2 dry run", call{"POST", "/", ec2Scope, "Action=DescribeVpcs&Version=2016-11-15&DryRun=true", nil}, 412, "DryRunOperation"},
		{"ec2 too large", call{"POST", "/", ec2Scope, strings.Repeat("a", maxBody+1), nil}, 413, "RequestEntityTooLarge"},
		{"sts without signature", call{"POST", "/", "", "Action=GetCallerIdentity&Version=2011-06-15", nil}, 403, "MissingAuthenticationToken"},
		{"sts unknown action", call{"POST", "/", stsScope, "Action=GetSessionToken&Version=2011-06-15", nil}, 400, "InvalidAction"},
		{"sts unknown parameter", call{"POST", "/", stsScope, "Action=GetCallerIdentity&Version=2011-06-15&X=1", nil}, 400, "MalformedInput"},
		{"sts missing parameter", call{"POST", "/", stsScope, "Action=AssumeRole&Version=2011-06-15&RoleSessionName=ab", nil}, 400, "ValidationError"},
		{"iam not found", call{"POST", "/", "us-east-1/iam", "Action=GetRole&Version=2010-05-08&RoleName=x", nil}, 404, "NoSuchEntity"},
		{"ssm without signature", call{"POST", "/", "", "{}", target("GetParameter")}, 403, "MissingAuthenticationTokenException"},
		{"ssm unknown operation", call{"POST", "/", "eu-west-1/ssm", "{}", target("LabelParameterVersion")}, 404, "UnknownOperationException"},
		{"ssm unknown member", call{"POST", "/", "eu-west-1/ssm", `{"Name":"a","Colour":1}`, target("GetParameter")}, 400, "ValidationException"},
		{"ssm wrong type", call{"POST", "/", "eu-west-1/ssm", `{"Name":7}`, target("GetParameter")}, 400, "SerializationException"},
		{"ssm text after it", call{"POST", "/", "eu-west-1/ssm", `{"Name":"a"}{}`, target("GetParameter")}, 400, "SerializationException"},
		{"eks unknown path", call{"GET", "/nothing", "eu-west-1/eks", "", nil}, 404, "UnknownOperationException"},
		{"unknown service", call{"GET", "/bucket", "eu-west-1/s3", "", nil}, 400, "InvalidAction"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			status, body, header := raw(t, newServer(t), tt.call.method, tt.call.path, tt.call.scope, tt.call.body, tt.call.header)
			if status != tt.status {
				t.Errorf("status = %d, want %d", status, tt.status)
			}
			if got := envelopeCode(t, body); got != tt.code {
				t.Errorf("code = %q, want %q in %s", got, tt.code, body)
			}
			if id := header.Get("X-Amzn-Requestid"); len(id) != 36 {
				t.Errorf("request id = %q", id)
			}
		})
	}
}

// envelopeCode reads the code out of an error body of any protocol.
func envelopeCode(t *testing.T, body string) string {
	t.Helper()
	if strings.HasPrefix(body, "{") {
		var e struct {
			Type string `json:"__type"`
		}
		if err := json.Unmarshal([]byte(body), &e); err != nil {
			t.Fatal(err)
		}
		return e.Type
	}
	var e struct {
		XMLName   xml.Name
		EC2       string `xml:"Errors>Error>Code"`
		EC2ID     string `xml:"RequestID"`
		Query     string `xml:"Error>Code"`
		QueryType string `xml:"Error>Type"`
		QueryID   string `xml:"RequestId"`
	}
	if err := xml.Unmarshal([]byte(body), &e); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	switch e.XMLName.Local {
	case "Response":
		if e.EC2ID == "" {
			t.Error("no RequestID in the body")
		}
		return e.EC2
	case "ErrorResponse":
		if e.QueryID == "" || e.QueryType != "Sender" {
			t.Errorf("RequestId %q and Type %q in the body", e.QueryID, e.QueryType)
		}
		return e.Query
	}
	return "no error in " + e.XMLName.Local
}

// TestRoutingWithoutScope wants a request without a signature to be told so by
// the service that it looks like.
func TestRoutingWithoutScope(t *testing.T) {
	s := newServer(t)
	for version, want := range map[string]string{"2016-11-15": "ec2", "2011-01-01": "autoscaling", "2011-06-15": "sts", "2010-05-08": "iam"} {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		if sv := s.route(r, model.Credential{}, url.Values{"Version": {version}}); sv == nil || sv.Name != want {
			t.Errorf("version %s is not routed to %s", version, want)
		}
	}
}
