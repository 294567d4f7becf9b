package reconciler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/render/diag"
)

// unknownIn is what a report says of a name that AWS does not know.
func unknownIn(r *plan.Report) *diag.Diagnostic {
	for i := range r.Diagnostics {
		if d := &r.Diagnostics[i]; d.Code == "unknown-name" {
			return d
		}
	}
	return nil
}

// named are manifests of a group whose launch template has one more field, and the
// line of that.
func named(field string) (text string, line int) {
	text = fmt.Sprintf(capaGroupManifests, secretBootstrap, "", "m5.large")
	text = strings.Replace(text, "iamInstanceProfile: nodes.cluster-api-provider-aws.sigs.k8s.io", field, 1)
	before, _, _ := strings.Cut(text, field)
	return text, strings.Count(before, "\n") + 1
}

// A name that AWS does not know is waited for as long as IAM needs to spread one that
// was made a moment ago. Then it is an error at its line, looked at again calmly.
func TestANameThatAWSDoesNotKnow(t *testing.T) {
	t.Parallel()
	key := func(w *world) {
		_, err := w.ec2().ImportKeyPair(t.Context(), &ec2.ImportKeyPairInput{KeyName: aws.String("nobody"), PublicKeyMaterial: []byte("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA me")})
		w.check(nil, err)
	}
	profile := func(w *world) {
		if err := w.srv.Seed(strings.NewReader(`{"regions": {"eu-west-1": {"instanceProfiles": ["nobody"]}}}`)); err != nil {
			w.t.Fatal(err)
		}
	}
	for field, tt := range map[string]struct {
		says string
		make func(*world)
	}{
		"iamInstanceProfile: nobody":                             {"AWS knows no instance profile nobody", profile},
		"sshKeyName: nobody":                                     {"AWS knows no key pair nobody", key},
		"additionalSecurityGroups: [{id: sg-0123456789abcdef0}]": {"AWS knows no security group sg-0123456789abcdef0", nil},
	} {
		t.Run(field, func(t *testing.T) {
			w := newWorld(t)
			text, line := named(field)
			want := fromManifests(t, text)
			r := w.must(reconciler.Apply, want)[0]
			d := unknownIn(r)
			if d == nil || d.Severity != diag.Warning || d.Summary != tt.says+" yet" || d.File != "all.yaml" || d.Line != line {
				t.Fatalf("at first, of line %d: %v", line, d)
			}
			w.paced(3*time.Minute, want)
			w.srv.ResetCalls()
			n, last := w.paced(time.Hour, want)
			d = unknownIn(last[0])
			if d == nil || d.Severity != diag.Error || d.Summary != tt.says || d.Line != line {
				t.Errorf("in the end, of line %d: %v", line, d)
			}
			if _, writes := w.calls(); n > 60 || writes > 7 {
				t.Errorf("%d passes and %d writes in an hour: %v", n, writes, w.srv.CallCounts())
			}
			if tt.make == nil {
				return
			}
			tt.make(w)
			_, last = w.paced(20*time.Minute, want)
			if unknownIn(last[0]) != nil || !converged(last) {
				t.Errorf("once it is there: %v", last[0].Diagnostics)
			}
		})
	}
}

// A rollout to a name that AWS does not know fails at the machine that is to be
// launched: it is shown at the line, and not tried again by itself.
func TestARolloutToANameThatAWSDoesNotKnow(t *testing.T) {
	w := newWorld(t)
	good, _ := named("sshKeyName: ops")
	w.settle(fromManifests(t, good))
	text, line := named("sshKeyName: nobody")
	_, last := w.paced(30*time.Minute, fromManifests(t, text))
	i := slices.IndexFunc(last[0].Diagnostics, func(d diag.Diagnostic) bool { return d.Code == "rollout-failed" })
	if i < 0 {
		t.Fatalf("the rollout has not failed: %v", last[0].Diagnostics)
	}
	if d := last[0].Diagnostics[i]; d.Line != line || !strings.Contains(d.Summary, "The key pair 'nobody' does not exist") {
		t.Errorf("of line %d: %v", line, d)
	}
}
