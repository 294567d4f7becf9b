package checked

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
)

// TestAWrongRequestEndsTheTests shows that what no operation has does not get away.
func TestAWrongRequestEndsTheTests(t *testing.T) {
	for body, want := range map[string]string{
		"Action=DescribeVpcs&Version=2016-11-15":            "<nil>",
		"Action=DescribeVpcs&Version=2016-11-15&Colour=red": "request ec2 DescribeVpcs breaks AWS's model: Colour: the operation has no such member",
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); got != want {
					t.Errorf("%s: %s, want %s", body, got, want)
				}
			}()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AKIA/20260301/eu-west-1/ec2/aws4_request, SignedHeaders=host, Signature=00")
			resp, err := sdk.Around(nobody{}).Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close() // it is empty
		}()
	}
}

type nobody struct{}

func (nobody) Do(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody}, nil
}
