package awsemu_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

// post sends a form to an EC2 action without an SDK and returns the answer's size.
func post(tb testing.TB, s http.Handler, action string, form url.Values) int {
	tb.Helper()
	form.Set("Action", action)
	form.Set("Version", "2016-11-15")
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AKIA/20260301/eu-west-1/ec2/aws4_request, SignedHeaders=host, Signature=00")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		tb.Fatalf("%s: status %d: %s", action, w.Code, w.Body)
	}
	return w.Body.Len()
}

// manyTemplates makes n launch templates, every tenth of them of owner weir.
func manyTemplates(tb testing.TB, n int) *awsemu.Server {
	tb.Helper()
	s, err := awsemu.New(awsemu.Options{Quotas: map[string]int{"launch-templates": n}})
	if err != nil {
		tb.Fatal(err)
	}
	for i := 0; i < n; i++ {
		owner := "other"
		if i%10 == 0 {
			owner = "weir"
		}
		post(tb, s, "CreateLaunchTemplate", url.Values{
			"LaunchTemplateName":                         {fmt.Sprintf("pool-%05d", i)},
			"LaunchTemplateData.InstanceType":            {"m5.large"},
			"LaunchTemplateData.UserData":                {strings.Repeat("QUJD", 250)},
			"TagSpecification.1.ResourceType":            {"launch-template"},
			"TagSpecification.1.Tag.1.Key":               {"weir.dev/owner"},
			"TagSpecification.1.Tag.1.Value":             {owner},
			"TagSpecification.1.Tag.2.Key":               {"weir.dev/pool"},
			"TagSpecification.1.Tag.2.Value":             {fmt.Sprintf("default/pool-%05d", i)},
			"LaunchTemplateData.SecurityGroupId.1":       {"sg-0123456789abcdef0"},
			"LaunchTemplateData.IamInstanceProfile.Name": {"nodes.cluster-api-provider-aws.sigs.k8s.io"},
		})
	}
	return s
}

func BenchmarkDescribePage(b *testing.B) {
	s := manyTemplates(b, 10000)
	filter := func(value string) url.Values {
		return url.Values{"MaxResults": {"200"}, "Filter.1.Name": {"tag:weir.dev/owner"}, "Filter.1.Value.1": {value}}
	}
	for name, owner := range map[string]string{"dense": "other", "sparse": "weir"} {
		b.Run("templates/200of10000/"+name, func(b *testing.B) {
			size := 0
			for b.Loop() {
				size = post(b, s, "DescribeLaunchTemplates", filter(owner))
			}
			b.ReportMetric(float64(size), "bytes/answer")
		})
	}
	b.Run("versions/200of10000", func(b *testing.B) {
		for b.Loop() {
			post(b, s, "DescribeLaunchTemplateVersions", url.Values{"MaxResults": {"200"}, "LaunchTemplateVersion.1": {"$Latest"}, "LaunchTemplateVersion.2": {"$Default"}})
		}
	})
	b.Run("images/byname", func(b *testing.B) {
		for b.Loop() {
			post(b, s, "DescribeImages", url.Values{"Owner.1": {"819546954734"}, "Filter.1.Name": {"name"}, "Filter.1.Value.1": {"capa-ami-ubuntu-24.04-?1.33.5-*"}})
		}
	})
}

func BenchmarkCreateTemplates(b *testing.B) {
	for b.Loop() {
		manyTemplates(b, 500)
	}
}
