package reconciler_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/cloudtest"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
)

// TestEveryRowOfATemplateIsHeld: each row of the table of fields is set and then rests.
// weir puts a change by hand right. A change in Git makes a version, and the plan names
// the manifest's field.
func TestEveryRowOfATemplateIsHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rows := cloudtest.TemplateFields()
	pool := func(i int, data intent.TemplateData) intent.Pool {
		p := groupPool(fmt.Sprintf("pool%02d", i), "m5.large", 0)
		if data.InstanceType == "" {
			data.InstanceType = "m5.large"
		}
		p.LaunchTemplate.Data, p.LaunchTemplate.RootDevice = data, false
		p.Options = object("PoolOptions", p.Key.Name)
		return p
	}
	var declared, changed []intent.Pool
	for i, r := range rows {
		declared, changed = append(declared, pool(i, r.Declared)), append(changed, pool(i, r.Changed))
	}
	blue := target("blue", declared...)
	w.settle(blue)
	w.srv.ResetCalls()
	w.restart()
	if r := w.must(reconciler.Apply, blue)[0]; !r.Converged() {
		t.Errorf("a process that remembers nothing does not rest: %v", r.Diagnostics)
	}
	if _, writes := w.calls(); writes != 0 {
		t.Errorf("writes after convergence: %v", w.srv.CallCounts())
	}
	for i, r := range rows {
		name := declared[i].Key.Name
		newest := w.versions(name).LaunchTemplateVersions[0]
		data := &types.RequestLaunchTemplateData{}
		remarshal(t, newest.LaunchTemplateData, data)
		r.ByHand(data)
		out, err := w.ec2().CreateLaunchTemplateVersion(context.Background(), &ec2.CreateLaunchTemplateVersionInput{
			LaunchTemplateName: aws.String(name), VersionDescription: newest.VersionDescription, LaunchTemplateData: data,
		})
		if err != nil {
			t.Fatalf("%s: %v", r.Row.AWS, err)
		}
		number := aws.ToInt64(out.LaunchTemplateVersion.VersionNumber)
		w.check(w.ec2().ModifyLaunchTemplate(context.Background(), &ec2.ModifyLaunchTemplateInput{LaunchTemplateName: aws.String(name), DefaultVersion: aws.String(fmt.Sprint(number))}))
		w.setVersion(name, number)
	}
	w.settle(blue)
	for i, r := range rows {
		name := declared[i].Key.Name
		all := w.versions(name).LaunchTemplateVersions // newest first
		if len(all) != 3 {
			t.Errorf("%s: %d versions, want the first, that by hand and one more", r.Row.AWS, len(all))
			continue
		}
		if d := cmp.Diff(all[2].LaunchTemplateData, all[0].LaunchTemplateData, exported); d != "" {
			t.Errorf("%s is not put right (-want +got):\n%s", r.Row.AWS, d)
		}
		if cmp.Equal(all[2].LaunchTemplateData, all[1].LaunchTemplateData, exported) {
			t.Errorf("%s: what is done by hand changes nothing", r.Row.AWS)
		}
		if v, d := aws.ToString(w.group(name).LaunchTemplate.Version), aws.ToInt64(w.template(name).DefaultVersionNumber); v != "3" || d != 3 {
			t.Errorf("%s: the group runs version %s, the default is %d", r.Row.AWS, v, d)
		}
	}
	report := w.must(reconciler.PlanOnly, target("blue", changed...))[0]
	for i, r := range rows {
		if r.Row.AWS == "BlockDeviceMappings[].Ebs.DeleteOnTermination" {
			continue // no manifest says it
		}
		said := false
		var fields []string
		for _, s := range report.Plan.Steps {
			if s.Pool != declared[i].Key.String() || s.Resource != step.LaunchTemplate {
				continue
			}
			for _, c := range s.Changes {
				fields = append(fields, c.Field)
				said = said || sets(r.Row, c, declared[i])
			}
		}
		if !said {
			t.Errorf("%s: no change of its field among %v", r.Row.AWS, fields)
		}
	}
}

// exported leaves out of comparisons what the SDK keeps for itself.
var exported = cmp.FilterPath(func(p cmp.Path) bool {
	return p.Last().String() == ".noSmithyDocumentSerde"
}, cmp.Ignore())

// sets reports whether a change is of the field that sets a row's member.
func sets(r *field.Row, c step.Change, p intent.Pool) bool {
	at, object := r.OptionsField(), p.Options
	if f := r.PoolFields(); len(f) > 0 {
		at, object = f[0], p.Infrastructure
	}
	at = strings.ReplaceAll(at, "[]", "[0]")
	return c.Object == object && slices.Contains([]string{at, at + "[0]"}, c.Field) && c.Path.String() == "spec."+c.Field
}
