package resolve_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/resolve"
	"github.com/weir-gitops/weir/render/intent"
)

// A parameter may hold anything: what is no image is not shown.
func TestTheValueOfAParameterIsNotShown(t *testing.T) {
	got, err := resolve.New(world(), newClock().now).Answer(context.Background(), []resolve.Request{{Lookup: intent.Lookup{Kind: intent.ImageByParameter, Name: "/secret"}}})
	if err != nil || got[0].Code != "parameter-no-image" || strings.Contains(fmt.Sprintf("%+v", got), "hunter2") {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAnswer(t *testing.T) {
	eksImage := func(kind, version, instanceType string) intent.Lookup {
		return intent.Lookup{Kind: intent.ImageForEKS, Name: kind, Version: version, InstanceType: instanceType}
	}
	named := func(owner, pattern, instanceType string) intent.Lookup {
		return intent.Lookup{Kind: intent.ImageByName, Owner: owner, Name: pattern, InstanceType: instanceType}
	}
	imageFor := func(id, instanceType string) intent.Lookup {
		return intent.Lookup{Kind: intent.ImageByID, Name: id, InstanceType: instanceType}
	}
	subnets := intent.Lookup{Kind: intent.Subnets}
	in := func(zones, kind string) intent.Lookup {
		return intent.Lookup{Kind: intent.Subnets, Zones: zones, SubnetType: kind}
	}
	core := intent.Lookup{Kind: intent.CoreSecurityGroups}
	withNetwork := func(c intent.Cluster, n intent.Network) intent.Cluster { c.Network = n; return c }

	tests := map[string]struct {
		change  func(*fakeCloud)
		request resolve.Request
		want    string // a short form of the answer
	}{
		"image by id":           {request: resolve.Request{Lookup: intent.Lookup{Kind: intent.ImageByID, Name: "ami-old"}}, want: "image ami-old"},
		"image by id, missing":  {request: resolve.Request{Lookup: intent.Lookup{Kind: intent.ImageByID, Name: "ami-x"}}, want: "image-not-found: ami-x"},
		"image by id, failed":   {request: resolve.Request{Lookup: intent.Lookup{Kind: intent.ImageByID, Name: "ami-failed"}}, want: "image-not-available: failed"},
		"image by id, fits":     {request: resolve.Request{Lookup: imageFor("ami-al2arm", "m6g.large")}, want: "image ami-al2arm"},
		"image by id, misfit":   {request: resolve.Request{Lookup: imageFor("ami-al2arm", "m5.large")}, want: "architecture-mismatch: is arm64, but m5.large is x86_64"},
		"image by id, no type":  {request: resolve.Request{Lookup: imageFor("ami-al2arm", "m5.huge")}, want: "instance-type-unknown: m5.huge"},
		"parameter, misfit":     {request: resolve.Request{Lookup: intent.Lookup{Kind: intent.ImageByParameter, Name: "/aws/service/eks/optimized-ami/1.31/amazon-linux-2023/arm64/standard/recommended/image_id", InstanceType: "m5.large"}}, want: "architecture-mismatch: ami-al2023arm is arm64"},
		"parameter, missing":    {request: resolve.Request{Lookup: intent.Lookup{Kind: intent.ImageByParameter, Name: "/none"}}, want: "parameter-not-found: /none"},
		"parameter, no image":   {request: resolve.Request{Lookup: intent.Lookup{Kind: intent.ImageByParameter, Name: "/secret"}}, want: "parameter-no-image: the SSM parameter /secret does not contain"},
		"parameter, dead image": {request: resolve.Request{Lookup: intent.Lookup{Kind: intent.ImageByParameter, Name: "/mine"}}, want: "image-not-found: the SSM parameter /mine"},

		"eks al2":                {request: resolve.Request{Lookup: eksImage("AmazonLinux", "v1.31.2", "m5.large")}, want: "image ami-al2"},
		"eks al2 arm":            {request: resolve.Request{Lookup: eksImage("AmazonLinux", "1.31", "m6g.large")}, want: "image ami-al2arm"},
		"eks al2023":             {request: resolve.Request{Lookup: eksImage("AmazonLinux2023", "v1.31", "t2.micro")}, want: "image ami-al2023"},
		"eks al2023 arm":         {request: resolve.Request{Lookup: eksImage("AmazonLinux2023", "v1.31.9", "m6g.large")}, want: "image ami-al2023arm"},
		"eks al2023, no type":    {request: resolve.Request{Lookup: eksImage("AmazonLinux2023", "v1.31.9", "")}, want: "image ami-al2023"},
		"eks gpu":                {request: resolve.Request{Lookup: eksImage("AmazonLinux2023GPU", "v1.31.9", "m5.large")}, want: "image ami-gpu"},
		"eks gpu arm":            {request: resolve.Request{Lookup: eksImage("AmazonLinux2023GPU", "v1.31.9", "m6g.large")}, want: "parameter-not-found: /arm64/nvidia"},
		"eks, unknown version":   {request: resolve.Request{Lookup: eksImage("AmazonLinux2023", "v1.99.0", "m5.large")}, want: "parameter-not-found: /1.99/"},
		"eks, broken version":    {request: resolve.Request{Lookup: eksImage("AmazonLinux2023", "newest", "m5.large")}, want: "version-unknown: newest"},
		"eks, unknown type":      {request: resolve.Request{Lookup: eksImage("Debian", "v1.31.9", "")}, want: "image-lookup-unknown: Debian"},
		"eks, unknown instance":  {request: resolve.Request{Lookup: eksImage("AmazonLinux2023", "v1.31.9", "m5.huge")}, want: "instance-type-unknown: m5.huge"},
		"eks, foreign processor": {request: resolve.Request{Lookup: eksImage("AmazonLinux2023", "v1.31.9", "mac2.metal")}, want: "instance-type-unknown: mac2.metal"},

		"image by name, newest with the greater id": {request: resolve.Request{Lookup: named("111", "capa-1.31.0-*", "m5.large")}, want: "image ami-new2"},
		"image by name, none of that architecture":  {request: resolve.Request{Lookup: named("111", "capa-1.31.0-*", "m6g.large")}, want: "image-not-found: arm64"},

		"subnets by id":          {request: resolve.Request{Lookup: intent.Lookup{Kind: intent.Subnets, IDs: "subnet-a,subnet-pub"}}, want: "subnets subnet-a subnet-pub"},
		"subnets by id, missing": {request: resolve.Request{Lookup: intent.Lookup{Kind: intent.Subnets, IDs: "subnet-a,subnet-x"}}, want: "subnets-not-found: subnet-x"},
		"subnets by filter": {request: resolve.Request{Lookup: intent.Lookup{Kind: intent.Subnets, IDs: "subnet-a", Filters: "availability-zone=eu-west-1b;vpc-id=vpc-web"}},
			want: "subnets subnet-a subnet-b subnet-elb"},
		"subnets by filter, none": {request: resolve.Request{Lookup: intent.Lookup{Kind: intent.Subnets, Filters: "vpc-id=vpc-0"}}, want: "subnets-not-found: vpc-0"},

		"network of the target": {request: resolve.Request{Lookup: subnets, Cluster: shop, Network: resolve.Network{SubnetIDs: []string{"subnet-pub", "subnet-a"}}}, want: "subnets subnet-a subnet-pub"},
		"VPC of the target":     {request: resolve.Request{Lookup: subnets, Cluster: shop, Network: resolve.Network{VPCID: "vpc-web"}}, want: "subnets subnet-a subnet-b"},
		"missing VPC":           {request: resolve.Request{Lookup: subnets, Cluster: shop, Network: resolve.Network{VPCID: "vpc-0"}}, want: "subnets-not-found: vpc-0"},
		"manifests": {request: resolve.Request{Lookup: subnets, Cluster: withNetwork(web, intent.Network{Subnets: []intent.Subnet{{ID: "subnet-b"}, {ID: "subnet-a", Public: true}}})},
			want: "subnets subnet-b"},
		"manifests with a VPC":        {request: resolve.Request{Lookup: subnets, Cluster: withNetwork(shop, intent.Network{VPCID: "vpc-web", Subnets: []intent.Subnet{{ID: "web-private-1"}}})}, want: "subnets subnet-a subnet-b"},
		"manifests, missing subnet":   {request: resolve.Request{Lookup: subnets, Cluster: withNetwork(web, intent.Network{Subnets: []intent.Subnet{{ID: "subnet-x"}}})}, want: "subnets-not-found: the cluster's manifests"},
		"EKS, all public":             {request: resolve.Request{Lookup: subnets, Cluster: shop}, want: "subnets subnet-d1 subnet-d2"},
		"tags":                        {request: resolve.Request{Lookup: subnets, Cluster: web}, want: "subnets subnet-a subnet-b"},
		"tags, zone":                  {request: resolve.Request{Lookup: in("eu-west-1a", ""), Cluster: web}, want: "subnets subnet-a subnet-pub"},
		"tags, zones and type":        {request: resolve.Request{Lookup: in("eu-west-1a,eu-west-1b", "public"), Cluster: web}, want: "subnets subnet-elb subnet-pub"},
		"tags, private in zone":       {request: resolve.Request{Lookup: in("eu-west-1b", "private"), Cluster: web}, want: "subnets subnet-b"},
		"tags, all":                   {request: resolve.Request{Lookup: in("", "all"), Cluster: web}, want: "subnets subnet-a subnet-b subnet-elb subnet-pub"},
		"zone without subnet":         {request: resolve.Request{Lookup: in("eu-west-1a,eu-west-1c", ""), Cluster: web}, want: "subnets-not-found: eu-west-1c"},
		"edge zone":                   {request: resolve.Request{Lookup: in("eu-west-1-lon-1a", ""), Cluster: web}, want: "subnets-not-found: lon"},
		"no private subnet in EKS":    {request: resolve.Request{Lookup: in("", "private"), Cluster: shop}, want: "subnets-not-found: private subnet"},
		"nothing answers":             {request: resolve.Request{Lookup: subnets, Cluster: lone}, want: "network-unknown: the cluster is no EKS cluster; no subnet is tagged"},
		"no EKS cluster":              {request: resolve.Request{Lookup: subnets, Cluster: ghost}, want: "cluster-not-found: there is no EKS cluster ghost"},
		"no EKS cluster, default VPC": {change: onlyDefault, request: resolve.Request{Lookup: subnets, Cluster: ghost}, want: "cluster-not-found: there is no EKS cluster ghost"},
		"default VPC":                 {change: onlyDefault, request: resolve.Request{Lookup: subnets, Cluster: lone}, want: "subnets subnet-d1 subnet-d2 (default-network)"},
		"default VPC, no other name":  {change: onlyDefault, request: resolve.Request{Lookup: subnets}, want: "subnets subnet-d1 subnet-d2 (default-network)"},

		"groups of the target":             {request: resolve.Request{Lookup: core, Cluster: web, Network: resolve.Network{SecurityGroupIDs: []string{"sg-2", "sg-1"}}}, want: "groups sg-1 sg-2"},
		"groups overridden":                {request: resolve.Request{Lookup: core, Cluster: withNetwork(web, intent.Network{SecurityGroups: map[string]string{"node": "sg-n", "lb": "sg-l", "bastion": "sg-b"}})}, want: "groups sg-l sg-n"},
		"groups overridden without lb":     {request: resolve.Request{Lookup: core, Cluster: withNetwork(web, intent.Network{SecurityGroups: map[string]string{"node": "sg-n"}})}, want: "groups sg-n"},
		"groups overridden, EKS":           {request: resolve.Request{Lookup: core, Cluster: withNetwork(shop, intent.Network{SecurityGroups: map[string]string{"node-eks-additional": "sg-n"}})}, want: "groups sg-eks sg-n"},
		"groups overridden, EKS not there": {request: resolve.Request{Lookup: core, Cluster: withNetwork(ghost, intent.Network{SecurityGroups: map[string]string{"node-eks-additional": "sg-n"}})}, want: "cluster-not-found: ghost"},
		"groups of EKS":                    {request: resolve.Request{Lookup: core, Cluster: shop}, want: "groups sg-eks sg-extra"},
		"groups tagged":                    {request: resolve.Request{Lookup: core, Cluster: web}, want: "groups sg-lb sg-node"},
		"groups, no EKS cluster":           {change: onlyDefault, request: resolve.Request{Lookup: core, Cluster: ghost}, want: "cluster-not-found: there is no EKS cluster ghost"},
		"groups, nothing answers":          {request: resolve.Request{Lookup: core, Cluster: lone}, want: "security-groups-unknown: no security group is tagged"},
		"groups, default VPC":              {change: onlyDefault, request: resolve.Request{Lookup: core, Cluster: lone}, want: "groups sg-default (default-network)"},
		"groups by filter":                 {request: resolve.Request{Lookup: intent.Lookup{Kind: intent.SecurityGroupsByFilter, Filters: "tag:team=x"}}, want: "groups sg-x"},
		"groups by filter, none":           {request: resolve.Request{Lookup: intent.Lookup{Kind: intent.SecurityGroupsByFilter, Filters: "tag:team=y"}}, want: "security-groups-not-found: tag:team=y"},

		"cluster":            {request: resolve.Request{Lookup: intent.Lookup{Kind: intent.EKSCluster, Name: "shop"}}, want: "cluster shop"},
		"cluster, missing":   {request: resolve.Request{Lookup: intent.Lookup{Kind: intent.EKSCluster, Name: "ghost"}}, want: "cluster-not-found: ghost"},
		"cluster, not ready": {request: resolve.Request{Lookup: intent.Lookup{Kind: intent.EKSCluster, Name: "young"}}, want: "cluster young"},
		"role":               {request: resolve.Request{Lookup: intent.Lookup{Kind: intent.Role, Name: "nodes"}}, want: "role arn:aws:iam::1:role/nodes"},
		"role, missing":      {request: resolve.Request{Lookup: intent.Lookup{Kind: intent.Role, Name: "none"}}, want: "role-not-found: none"},
		"unknown lookup":     {request: resolve.Request{Lookup: intent.Lookup{Kind: "weather"}}, want: "unknown-lookup: weather"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := world()
			if tt.change != nil {
				tt.change(f)
			}
			got, err := resolve.New(f, newClock().now).Answer(context.Background(), []resolve.Request{tt.request})
			if err != nil {
				t.Fatal(err)
			}
			if a := got[0]; a.Problem != "" {
				code, part, _ := strings.Cut(tt.want, ": ")
				if a.Code != code || !strings.Contains(a.Problem, part) {
					t.Errorf("got the problem %s: %s\nwant %s", a.Code, a.Problem, tt.want)
				}
				return
			}
			if d := cmp.Diff(tt.want, short(got[0])); d != "" {
				t.Errorf("answer (-want +got):\n%s", d)
			}
		})
	}
}

// short prints an answer in a few words.
// TestASecondVPCLeavesTheAnswerOfOld: pools that run in the default VPC are told what
// the answer was, and new ones that there is none any more.
func TestASecondVPCLeavesTheAnswerOfOld(t *testing.T) {
	f := world()
	subnets, core := intent.Lookup{Kind: intent.Subnets}, intent.Lookup{Kind: intent.CoreSecurityGroups}
	got, err := resolve.New(f, newClock().now).Answer(context.Background(), []resolve.Request{
		{Lookup: subnets, Cluster: lone}, {Lookup: core, Cluster: lone}, {Lookup: intent.Lookup{Kind: intent.Subnets, Zones: "eu-west-1c"}, Cluster: lone},
	})
	if err != nil {
		t.Fatal(err)
	}
	old := []string{"subnet-d1", "subnet-d2"}
	if a := got[0]; a.Code != "network-unknown" || !strings.Contains(a.Problem, "is not the region's only one") || !slices.Equal(a.Lapsed, old) || !slices.Equal(a.Subnets, old) {
		t.Errorf("subnets: %+v", a)
	}
	if a := got[1]; a.Code != "security-groups-unknown" || !slices.Equal(a.Lapsed, old) || !slices.Equal(a.SecurityGroups, []string{"sg-default"}) {
		t.Errorf("security groups: %+v", a)
	}
	if a := got[2]; a.Code != "network-unknown" || a.Lapsed != nil {
		t.Errorf("a zone that the default VPC has no subnet in: %+v", a)
	}
	f.vpcs = f.vpcs[1:]
	got, err = resolve.New(f, newClock().now).Answer(context.Background(), []resolve.Request{{Lookup: subnets, Cluster: lone}, {Lookup: core, Cluster: lone}})
	if err != nil || got[0].Code != "network-unknown" || got[0].Lapsed != nil || got[1].Code != "security-groups-unknown" || got[1].Lapsed != nil {
		t.Errorf("no default VPC: %+v, %v", got, err)
	}
}

// TestGroupsGivenByIDAreReadTogether: in one call for all pools, whichever way they are named, and not again while a group cannot have moved. The
// pool has no problem because AWS leaves out a group.
func TestGroupsGivenByIDAreReadTogether(t *testing.T) {
	f, clock := world(), newClock()
	f.groups = append(f.groups, resolve.SecurityGroup{ID: "sg-1", VPCID: "vpc-1"}, resolve.SecurityGroup{ID: "sg-2", VPCID: "vpc-2"})
	requests := []resolve.Request{
		{Lookup: intent.Lookup{Kind: intent.CoreSecurityGroups}, Network: resolve.Network{SecurityGroupIDs: []string{"sg-2", "sg-1"}}},
	}
	for _, id := range []string{"sg-1", "sg-2", "sg-gone"} {
		requests = append(requests, resolve.Request{Lookup: intent.Lookup{Kind: intent.SecurityGroupByID, Name: id}})
	}
	r := resolve.New(f, clock.now)
	for _, want := range []int{1, 1} {
		got, err := r.Answer(context.Background(), requests)
		if err != nil {
			t.Fatal(err)
		}
		vpcs := fmt.Sprint(got[0].VPCs, got[1].VPCs, got[2].VPCs, got[3].VPCs)
		if vpcs != "[vpc-1 vpc-2] [vpc-1] [vpc-2] []" || got[3].Problem != "" || f.calls["SecurityGroups"] != want {
			t.Errorf("VPCs %s, %d calls, %+v", vpcs, f.calls["SecurityGroups"], got[3])
		}
	}
	clock.t = clock.t.Add(6 * time.Minute)
	if _, err := r.Answer(context.Background(), requests[1:3]); err != nil || f.calls["SecurityGroups"] != 1 {
		t.Errorf("%d calls, %v", f.calls["SecurityGroups"], err)
	}
	f.fail = map[string]error{"SecurityGroups": &observed.Error{Kind: observed.Denied, Message: "no"}}
	got, err := resolve.New(f, clock.now).Answer(context.Background(), requests)
	if err != nil || got[0].Problem != "" || len(got[0].VPCs) != 0 || len(got[0].SecurityGroups) != 2 {
		t.Errorf("denied: %+v, %v", got, err)
	}
}

// TestVPCsAreTold as far as they are known.
func TestVPCsAreTold(t *testing.T) {
	requests := map[string]resolve.Request{
		"vpc-default,vpc-web": {Lookup: intent.Lookup{Kind: intent.Subnets, IDs: "subnet-a,subnet-d1"}},
		"vpc-default":         {Lookup: intent.Lookup{Kind: intent.CoreSecurityGroups}, Cluster: shop},
		"vpc-web":             {Lookup: intent.Lookup{Kind: intent.CoreSecurityGroups}, Cluster: web},
		"":                    {Lookup: intent.Lookup{Kind: intent.CoreSecurityGroups}, Network: resolve.Network{SecurityGroupIDs: []string{"sg-1"}}},
	}
	for want, r := range requests {
		got, err := resolve.New(world(), newClock().now).Answer(context.Background(), []resolve.Request{r})
		if err != nil || strings.Join(got[0].VPCs, ",") != want {
			t.Errorf("got %v, %v, want %s", got, err, want)
		}
	}
}

// TestRolesAsDeclared compares roles with what manifests declare of them. A difference is a
// warning with the command that ends it, and what cannot be read blocks nothing.
func TestRolesAsDeclared(t *testing.T) {
	const a, b = "arn:aws:iam::aws:policy/A", "arn:aws:iam::aws:policy/B"
	f := world()
	f.roles["nodes"] = resolve.Role{ARN: "arn:aws:iam::1:role/x/nodes", Path: "/x/", Boundary: b}
	f.policies = map[string][]string{"nodes": {a}}
	for name, tt := range map[string]struct {
		kind           intent.LookupKind
		role, declared string
		code, says     string
	}{
		"policy":             {intent.RolePolicies, "nodes", a, "", ""},
		"policy to attach":   {intent.RolePolicies, "nodes", intent.JoinList([]string{a, b}), "role-differs", "aws iam attach-role-policy --role-name nodes --policy-arn " + b},
		"policy of nobody":   {intent.RolePolicies, "gone", a, "", ""},
		"path":               {intent.RolePath, "nodes", "/x/", "", ""},
		"another path":       {intent.RolePath, "nodes", "/y/", "role-differs", "has the path /x/"},
		"path of nobody":     {intent.RolePath, "gone", "/y/", "", ""},
		"boundary":           {intent.RoleBoundary, "nodes", b, "", ""},
		"another boundary":   {intent.RoleBoundary, "nodes", a, "role-differs", "aws iam put-role-permissions-boundary --role-name nodes --permissions-boundary " + a},
		"boundary of nobody": {intent.RoleBoundary, "gone", a, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := resolve.New(f, newClock().now).Answer(t.Context(), []resolve.Request{{Lookup: intent.Lookup{Kind: tt.kind, Name: tt.role, IDs: tt.declared}}})
			if err != nil {
				t.Fatal(err)
			}
			if got[0].Problem != "" || got[0].Code != tt.code || !strings.Contains(got[0].Warning, tt.says) || (got[0].Warning == "") != (tt.says == "") {
				t.Errorf("got %+v", got[0])
			}
		})
	}
	f.fail = map[string]error{"RolePolicies": &observed.Error{Kind: observed.Denied, Service: "iam", Operation: "ListAttachedRolePolicies", Code: "AccessDenied", Message: "not authorized to perform: iam:ListAttachedRolePolicies"}}
	got, err := resolve.New(f, newClock().now).Answer(t.Context(), []resolve.Request{{Lookup: intent.Lookup{Kind: intent.RolePolicies, Name: "nodes", IDs: a}}})
	if err != nil || got[0].Problem != "" || got[0].Code != "role-unchecked" || !strings.Contains(got[0].Warning, "iam:ListAttachedRolePolicies") {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestDiscoveredSubnets tells subnets that happen to be there from those that
// somebody wrote down.
func TestDiscoveredSubnets(t *testing.T) {
	r := resolve.New(world(), newClock().now)
	written := web
	written.Network = intent.Network{Subnets: []intent.Subnet{{ID: "subnet-a"}}}
	subnets := intent.Lookup{Kind: intent.Subnets}
	tests := map[string]struct {
		request resolve.Request
		want    bool
	}{
		"tags":          {resolve.Request{Lookup: subnets, Cluster: web}, true},
		"EKS":           {resolve.Request{Lookup: subnets, Cluster: shop}, true},
		"manifests":     {resolve.Request{Lookup: subnets, Cluster: written}, false},
		"configuration": {resolve.Request{Lookup: subnets, Cluster: web, Network: resolve.Network{SubnetIDs: []string{"subnet-a"}}}, false},
		"zones":         {resolve.Request{Lookup: intent.Lookup{Kind: intent.Subnets, Zones: "eu-west-1a"}, Cluster: web}, false},
		"ids":           {resolve.Request{Lookup: intent.Lookup{Kind: intent.Subnets, IDs: "subnet-a"}}, false},
	}
	for name, tt := range tests {
		got, err := r.Answer(context.Background(), []resolve.Request{tt.request})
		if err != nil || got[0].Problem != "" || got[0].Discovered != tt.want {
			t.Errorf("%s: %+v, %v, want discovered %v", name, got, err, tt.want)
		}
	}
}

func TestWaitingForATurnEndsWithTheContext(t *testing.T) {
	cloud := &blocking{fakeCloud: world(), entered: make(chan struct{})}
	r := resolve.New(cloud, newClock().now)
	requests := []resolve.Request{{Lookup: intent.Lookup{Kind: intent.Role, Name: "nodes"}}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		_, err := r.Answer(ctx, requests)
		done <- err
	}()
	<-cloud.entered
	ended, end := context.WithCancel(context.Background())
	end()
	if _, err := r.Answer(ended, requests); !errors.Is(err, context.Canceled) {
		t.Errorf("the call that waits for its turn ended with %v", err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the call that waits for AWS ended with %v", err)
	}
}

// blocking answers Role when the context ends.
type blocking struct {
	*fakeCloud
	entered chan struct{}
}

func (b *blocking) Role(ctx context.Context, _ string) (resolve.Role, bool, error) {
	close(b.entered)
	<-ctx.Done()
	return resolve.Role{}, false, ctx.Err()
}
