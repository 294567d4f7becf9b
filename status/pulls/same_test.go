package pulls

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/report"
)

const nodegroupYAML = `apiVersion: cluster.x-k8s.io/v1beta1
kind: MachinePool
metadata: {name: ng}
spec:
  clusterName: demo
  replicas: 1
  template:
    spec:
      clusterName: demo
      version: v1.34.0
      bootstrap: {dataSecretName: ""}
      infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSManagedMachinePool, name: ng}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSManagedMachinePool
metadata: {name: ng, annotations: {weir.dev/replace: allowed}}
spec: {amiType: AL2023_x86_64_STANDARD, instanceType: m5.large, scaling: {minSize: 1, maxSize: 3}}
`

const launchConfigYAML = `apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSLaunchConfigTemplate
metadata: {name: shared}
spec: {template: {spec: {instanceType: m5.large, ami: {eksLookupType: AmazonLinux2023}}}}
`

const clusterYAML = `apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: demo}
spec: {}
`

// query asks the bench's AWS for something past weir.
func (b *bench) query(service, version, action string, fields ...string) {
	b.t.Helper()
	form := url.Values{"Action": {action}, "Version": {version}}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	req := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(form.Encode()))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=weir/20260101/eu-west-1/"+service+"/aws4_request, SignedHeaders=host, Signature=0")
	w := httptest.NewRecorder()
	if b.aws.ServeHTTP(w, req); w.Code != http.StatusOK {
		b.t.Fatalf("%s: %s", action, w.Body)
	}
}

// weir applies the plan that it showed: whatever a pull request does, the plan after the merge has the shown digest.
func TestTheShownDigestIsThatOfTheMerge(t *testing.T) {
	const kind = "  awsLaunchTemplate: {instanceType: m5.large, ami: {eksLookupType: AmazonLinux2023}}\n"
	shared := pool("one", kind, "  launchConfigRef: {kind: AWSLaunchConfigTemplate, name: shared}\n")
	sharedToo := strings.ReplaceAll(shared, "one", "too")
	one := func(text ...string) map[string]string {
		return map[string]string{"o/one/pool.yaml": strings.Join(text, "---\n")}
	}
	adopted := pool("found", "kind: AWSMachinePool\nmetadata: {name: found}", "kind: AWSMachinePool\nmetadata: {name: found, annotations: {weir.dev/adopt: \"true\"}}")
	for name, tc := range map[string]struct {
		base, head map[string]string
		// also makes what is in AWS already, message is the merge's.
		also    func(b *bench)
		message string
		// does are verbs that the plan must have, so that the case is what it says.
		does []step.Verb
	}{
		"a new pool":                    {one(pool("one")), one(pool("one"), pool("more")), nil, "", []step.Verb{step.Create}},
		"a rollout":                     {one(pool("one")), one(pool("one", "m5.large", "m5.xlarge")), nil, "", []step.Verb{step.Rollout}},
		"a setting":                     {one(pool("one")), one(pool("one", "maxSize: 3", "maxSize: 4")), nil, "", []step.Verb{step.Update}},
		"a new nodegroup":               {one(pool("one")), one(pool("one"), nodegroupYAML), nil, "", []step.Verb{step.Create}},
		"a replaced nodegroup":          {one(nodegroupYAML), one(strings.ReplaceAll(nodegroupYAML, "m5.large", "m5.xlarge")), nil, "", []step.Verb{step.Replace}},
		"a shared launch configuration": {one(clusterYAML, launchConfigYAML, shared), one(clusterYAML, strings.Replace(launchConfigYAML, "m5.large", "m5.xlarge", 1), shared), nil, "", []step.Verb{step.Rollout}},
		"one of two pools that share a launch configuration": {one(clusterYAML, launchConfigYAML, shared, sharedToo), one(clusterYAML, launchConfigYAML, shared, strings.Replace(sharedToo, "v1.33", "v1.34", 1)), nil, "", []step.Verb{step.Update, step.Rollout}},
		"other content for each of two pools that share one": {one(clusterYAML, launchConfigYAML, shared, sharedToo), one(clusterYAML, launchConfigYAML, strings.Replace(shared, "  launchConfigRef", "  additionalTags: {a: b}\n  launchConfigRef", 1), strings.Replace(sharedToo, "v1.33", "v1.34", 1)), nil, "", []step.Verb{step.Update, step.Rollout}},
		"a new launch configuration":                         {one(pool("one")), one(clusterYAML, launchConfigYAML, shared), nil, "", nil},
		"one pool less":                                      {one(pool("one"), pool("more")), one(pool("one")), nil, "", []step.Verb{step.Delete}},
		"more pools less than the limit allows":              {one(pool("one"), pool("second"), pool("third"), pool("fourth")), one(pool("one")), nil, "", nil},
		// Held steps are shown too: the trailer lets them run.
		"as many with the trailer": {one(pool("one"), pool("second"), pool("third"), pool("fourth")), one(pool("one")), nil, "merge\n\nWeir-Allow-Prune: one", nil},
		"two targets": {
			map[string]string{"o/one/pool.yaml": pool("one"), "o/two/pool.yaml": pool("two")},
			map[string]string{"o/one/pool.yaml": pool("one", "maxSize: 3", "maxSize: 4"), "o/two/pool.yaml": pool("two", "m5.large", "m5.xlarge")},
			nil, "", []step.Verb{step.Update, step.Rollout},
		},
		"a pool that goes to another target": {
			map[string]string{"o/one/pool.yaml": pool("one") + "---\n" + pool("more"), "o/two/pool.yaml": pool("two")},
			map[string]string{"o/one/pool.yaml": pool("one"), "o/two/pool.yaml": pool("two") + "---\n" + pool("more")},
			nil, "", nil,
		},
		"the same pool in two targets": {
			map[string]string{"o/one/pool.yaml": pool("one"), "o/two/pool.yaml": pool("two")},
			map[string]string{"o/one/pool.yaml": pool("one", "maxSize: 3", "maxSize: 4"), "o/two/pool.yaml": pool("one", "maxSize: 3", "maxSize: 5")},
			nil, "", nil,
		},
		"an adopted pool": {one(pool("one")), one(pool("one"), adopted), func(b *bench) {
			b.query("ec2", "2016-11-15", "CreateLaunchTemplate", "LaunchTemplateName", "found", "LaunchTemplateData.InstanceType", "m5.large",
				"LaunchTemplateData.ImageId", "resolve:ssm:/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/x86_64/standard/recommended/image_id")
			b.query("autoscaling", "2011-01-01", "CreateAutoScalingGroup", "AutoScalingGroupName", "found", "LaunchTemplate.LaunchTemplateName", "found",
				"MinSize", "1", "MaxSize", "3", "AvailabilityZones.member.1", "eu-west-1a")
		}, "", []step.Verb{step.Adopt}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "", ", allowAdopt: true")
			b.main(tc.base)
			b.converge()
			if tc.also != nil {
				tc.also(b)
			}
			head := b.propose(1, tc.head)
			b.round()
			p := b.display.last()
			shown, verbs := map[string]string{}, map[step.Verb]bool{}
			for _, r := range p.Reports {
				if r.Plan == nil {
					t.Fatalf("%s: %v", r.Target, r.Err)
				}
				shown[r.Target] = p.Digests[r.Target]
				for _, s := range r.Plan.Steps {
					verbs[s.Verb] = true
				}
			}
			for _, v := range tc.does {
				if !verbs[v] {
					t.Errorf("the plan does not %s: %v %s", v, slices.Sorted(maps.Keys(verbs)), p.Reason)
				}
			}
			if len(shown) == 0 {
				t.Fatalf("nothing is shown: %s %s", p.State, p.Reason)
			}
			if tc.message != "" {
				b.message = tc.message
			}
			b.merge(1, head)
			applied := map[string]string{}
			for _, r := range b.pass() {
				if r.Plan != nil && r.Touched {
					applied[r.Target] = r.Plan.Digest()
				}
			}
			if diff := cmp.Diff(shown, applied); diff != "" {
				t.Errorf("shown and applied: %s", diff)
			}
			b.round()
			if p := b.display.last(); p.State != report.PullMerged || len(p.Differs) > 0 {
				t.Errorf("told %s: %v", p.State, p.Differs)
			}
		})
	}
}
