package doctor_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/weir-gitops/weir/reconciler/awscloud/doctor"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/observed"
)

// make makes a group and a launch template of a name and tags.
func (p *patient) make(name string, tags map[string]string) {
	p.t.Helper()
	client, ctx := p.open(&doctor.Clock{}), p.t.Context()
	asg := autoscaling.NewFromConfig(client.Config, func(o *autoscaling.Options) { o.BaseEndpoint = client.Endpoint })
	compute := ec2.NewFromConfig(client.Config, func(o *ec2.Options) { o.BaseEndpoint = client.Endpoint })
	images, err := compute.DescribeImages(ctx, &ec2.DescribeImagesInput{Owners: []string{"amazon"}, Filters: []ec2types.Filter{{Name: aws.String("architecture"), Values: []string{"x86_64"}}}})
	if err != nil || len(images.Images) == 0 {
		p.t.Fatal("no image", err)
	}
	template := &ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String(name), LaunchTemplateData: &ec2types.RequestLaunchTemplateData{ImageId: images.Images[0].ImageId, InstanceType: "t3.micro"}}
	group := &autoscaling.CreateAutoScalingGroupInput{AutoScalingGroupName: aws.String(name), MinSize: aws.Int32(0), MaxSize: aws.Int32(0), AvailabilityZones: []string{region + "a"},
		LaunchTemplate: &types.LaunchTemplateSpecification{LaunchTemplateName: aws.String(name), Version: aws.String("1")}}
	if len(tags) > 0 {
		var marks []ec2types.Tag
		for k, v := range tags {
			marks = append(marks, ec2types.Tag{Key: aws.String(k), Value: aws.String(v)})
			group.Tags = append(group.Tags, types.Tag{Key: aws.String(k), Value: aws.String(v)})
		}
		template.TagSpecifications = []ec2types.TagSpecification{{ResourceType: ec2types.ResourceTypeLaunchTemplate, Tags: marks}}
	}
	if _, err := compute.CreateLaunchTemplate(ctx, template); err != nil {
		p.t.Fatal(err)
	}
	if _, err := asg.CreateAutoScalingGroup(ctx, group); err != nil {
		p.t.Fatal(err)
	}
}

// groups are the names of all groups, whoever made them, sorted.
func (p *patient) groups() (names []string) {
	p.t.Helper()
	client := p.open(&doctor.Clock{})
	out, err := autoscaling.NewFromConfig(client.Config, func(o *autoscaling.Options) { o.BaseEndpoint = client.Endpoint }).DescribeAutoScalingGroups(p.t.Context(), &autoscaling.DescribeAutoScalingGroupsInput{})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, g := range out.AutoScalingGroups {
		names = append(names, *g.AutoScalingGroupName)
	}
	slices.Sort(names)
	return names
}

func (p *patient) clean(number string) []string {
	p.t.Helper()
	wait := func(ctx context.Context, d time.Duration) error { p.clock.Advance(d); return ctx.Err() }
	return doctor.Clean(p.t.Context(), p.open(&doctor.Clock{}), doctor.Options{Number: number, Wait: wait, Now: p.clock.Now})
}

func tagsOf(number string) map[string]string {
	return map[string]string{doctor.Tag: number, observed.TagOwner: doctor.Instance}
}

// TestAVisitDeletesItsOwnOnly has things of others beside: of another visit, with a visit's
// tags and another name, as a copy has them, and with its name and no tags or not all.
func TestAVisitDeletesItsOwnOnly(t *testing.T) {
	p := newPatient(t, nil)
	for name, tags := range map[string]map[string]string{
		"web": tagsOf("n1"), "weir-doctor-n1-mine": nil, "weir-doctor-n2-group": tagsOf("n2"), "weir-doctor-n11-group": tagsOf("n11"), "weir-doctor-n2-copy": tagsOf("n2"),
		"weir-doctor-n3-group": {doctor.Tag: "n3"}, "weir-doctor-n4-group": tagsOf("n2"), "weir-doctor-n2-group-2": tagsOf("n2"),
	} {
		p.make(name, tags)
	}
	others := p.groups()
	if r := p.visit(t.Context(), func(o *doctor.Options) { o.Cluster = "" }); len(r.Left) > 0 {
		t.Errorf("left: %v", r.Left)
	}
	if got := p.groups(); !slices.Equal(got, others) {
		t.Errorf("after a visit there are %v", got)
	}
	p.clock.Advance(4 * time.Hour)
	if remains := p.clean(""); len(remains) > 0 {
		t.Errorf("left: %v", remains)
	}
	if got := strings.Join(p.groups(), " "); got != "web weir-doctor-n1-mine weir-doctor-n2-copy weir-doctor-n2-group-2 weir-doctor-n3-group weir-doctor-n4-group" {
		t.Errorf("after cleaning there are %v", got)
	}
}

// TestCleaningSparesAVisitUnderWay: what was made lately may be of a visit that somebody
// makes elsewhere, and says so; who knows that it is not names it.
func TestCleaningSparesAVisitUnderWay(t *testing.T) {
	p := newPatient(t, nil)
	p.make("weir-doctor-n2-group", tagsOf("n2"))
	p.clock.Advance(10 * time.Minute)
	left := p.clean("")
	if said := strings.Join(left, "\n"); len(left) != 2 || !strings.Contains(said, "Auto Scaling group weir-doctor-n2-group: it was made 10m0s ago, and the visit n2 may be under way; --clean --visit n2 deletes it") {
		t.Errorf("left: %v", left)
	}
	if n := len(p.groups()); n != 1 {
		t.Errorf("%d groups", n)
	}
	if left := p.clean("n2"); len(left) > 0 || len(p.groups()) > 0 {
		t.Errorf("left: %v, %v", left, p.groups())
	}
}

// TestCleaningLooksInEveryCluster, also where there are more than a page of them.
func TestCleaningLooksInEveryCluster(t *testing.T) {
	p := newPatient(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if q := r.URL.Query(); r.URL.Path == "/clusters" { // small pages
				q.Set("maxResults", "4")
				r.URL.RawQuery = q.Encode()
			}
			next.ServeHTTP(w, r)
		})
	})
	var clusters []string
	for i := range 10 {
		clusters = append(clusters, fmt.Sprintf(`{"name": "z%03d", "version": "1.33"}`, i))
	}
	if err := p.aws.Seed(strings.NewReader(`{"regions": {"` + region + `": {"clusters": [` + strings.Join(clusters, ",") + `]}}}`)); err != nil {
		t.Fatal(err)
	}
	client := p.open(&doctor.Clock{})
	k := eks.NewFromConfig(client.Config, func(o *eks.Options) { o.BaseEndpoint = client.Endpoint })
	compute := ec2.NewFromConfig(client.Config, func(o *ec2.Options) { o.BaseEndpoint = client.Endpoint })
	subnets, err := compute.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.CreateNodegroup(t.Context(), &eks.CreateNodegroupInput{ClusterName: aws.String("z009"), NodegroupName: aws.String("weir-doctor-n2-plain"), Tags: tagsOf("n2"),
		NodeRole: aws.String("arn:aws:iam::000000000000:role/nodes.cluster-api-provider-aws.sigs.k8s.io"), Subnets: []string{*subnets.Subnets[0].SubnetId}}); err != nil {
		t.Fatal(err)
	}
	p.clock.Advance(4 * time.Hour)
	left := p.clean("")
	list, err := k.ListNodegroups(t.Context(), &eks.ListNodegroupsInput{ClusterName: aws.String("z009")})
	if err != nil || len(list.Nodegroups) > 0 || len(left) > 0 {
		t.Errorf("nodegroups: %v, %v; left: %v", list.Nodegroups, err, left)
	}
}

// TestANodegroupThatStaysKeepsNoGroupAlive: EKS may take its time, and machines cost money.
func TestANodegroupThatStaysKeepsNoGroupAlive(t *testing.T) {
	var order []string
	refuses := broken{operation: regexp.MustCompile(`^DELETE .*/node-groups/`), refuse: func(string) (int, string) {
		order = append(order, "nodegroup")
		return 409, "ResourceInUseException"
	}}
	p := newPatient(t, func(next http.Handler) http.Handler {
		return refuses.front(broken{operation: regexp.MustCompile(`^DeleteAutoScalingGroup$`), answer: func(text string) string {
			order = append(order, "group")
			return text
		}}.front(next))
	})
	r := p.visit(t.Context(), nil)
	if slices.Index(order, "group") > slices.Index(order, "nodegroup") {
		t.Errorf("the group waits for nodegroups: %v", order)
	}
	if said := strings.Join(r.Left, "\n"); !strings.Contains(said, "nodegroup of cluster demo weir-doctor-n1-plain: ") {
		t.Errorf("left: %v", r.Left)
	}
	accounted(p, r)
}

// TestAStaleReadHidesNothing: a read from before the creation finds nothing, and the visit
// looks again before it says so.
func TestAStaleReadHidesNothing(t *testing.T) {
	for create, read := range map[string]string{"CreateAutoScalingGroup": "DescribeAutoScalingGroups", "CreateLaunchTemplate": "DescribeLaunchTemplates"} {
		ctx, cancel := context.WithCancel(t.Context())
		p := newPatient(t, func(next http.Handler) http.Handler {
			return broken{operation: regexp.MustCompile("^" + create + "$"), answer: func(text string) string {
				if !strings.Contains(text, "<Error") {
					cancel()
				}
				return text
			}}.front(next)
		})
		p.aws.Faults().Add(awsemu.Fault{Kind: awsemu.StaleRead, Operation: read, Resource: "weir.dev", Times: 1})
		r := p.visit(ctx, nil)
		cancel()
		if made := p.bare().made(); len(made) > 0 {
			t.Errorf("%s: %v is there, and the report says %v", create, made, r.Left)
		}
	}
}

// TestReportsNameNoAccount, whatever AWS says of what it refuses.
func TestReportsNameNoAccount(t *testing.T) {
	words := "User: arn:aws:iam::000000000000:user/alice is not authorized; " + strings.Repeat("x", 420) + " arn:aws:iam::000000000000:role/x"
	p := newPatient(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if strings.Contains(string(body), "Action=DeleteAutoScalingGroup") || strings.Contains(string(body), "Action=DescribeAccountLimits") || strings.Contains(string(body), "Action=EnableMetricsCollection") {
				w.WriteHeader(http.StatusForbidden)
				fmt.Fprintf(w, "<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>%s</Message></Error><RequestId>1</RequestId></ErrorResponse>", words)
				return
			}
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			next.ServeHTTP(w, r)
		})
	})
	r := p.visit(t.Context(), func(o *doctor.Options) { o.Cluster = "" })
	if len(r.Left) == 0 {
		t.Error("nothing is left")
	}
	if text := fmt.Sprint(r.Left, r.Findings); strings.Contains(text, "00000000") || !strings.Contains(text, "ACCOUNT") {
		t.Errorf("the report names the account: %s", text)
	}
}
