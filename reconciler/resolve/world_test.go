package resolve_test

import (
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/resolve"
	"github.com/weir-gitops/weir/render/intent"
)

const (
	capaTag = "sigs.k8s.io/cluster-api-provider-aws/cluster/"
	k8sTag  = "kubernetes.io/cluster/"
	roleTag = "sigs.k8s.io/cluster-api-provider-aws/role"
)

func image(id, name, arch, created string) resolve.Image {
	return resolve.Image{Image: observed.Image{ID: id, Name: name, Architecture: arch, RootDevice: "/dev/xvda", RootSize: 8, CreatedAt: created}, State: "available", Owner: "maker"}
}

func subnet(id, vpc, zone string, public bool, tags ...string) resolve.Subnet {
	s := resolve.Subnet{ID: id, VPCID: vpc, Zone: zone, MapPublicIP: public, Tags: map[string]string{}}
	for i := 0; i < len(tags); i += 2 {
		s.Tags[tags[i]] = tags[i+1]
	}
	return s
}

// world is an account with two VPCs: one of the self-managed cluster "web", and
// the default one, in which the EKS cluster "shop" runs.
func world() *fakeCloud {
	return &fakeCloud{
		parameters: map[string]string{
			"/aws/service/eks/optimized-ami/1.31/amazon-linux-2/recommended/image_id":                    "ami-al2",
			"/aws/service/eks/optimized-ami/1.31/amazon-linux-2-arm64/recommended/image_id":              "ami-al2arm",
			"/aws/service/eks/optimized-ami/1.31/amazon-linux-2023/x86_64/standard/recommended/image_id": "ami-al2023",
			"/aws/service/eks/optimized-ami/1.31/amazon-linux-2023/arm64/standard/recommended/image_id":  "ami-al2023arm",
			"/aws/service/eks/optimized-ami/1.31/amazon-linux-2023/x86_64/nvidia/recommended/image_id":   "ami-gpu",
			"/mine": "ami-gone", "/secret": "hunter2-hunter2",
		},
		images: []resolve.Image{
			image("ami-al2", "al2", "x86_64", "2026-01-01"), image("ami-al2arm", "al2", "arm64", "2026-01-01"),
			image("ami-al2023", "al2023", "x86_64", "2026-01-01"), image("ami-al2023arm", "al2023", "arm64", "2026-01-01"),
			image("ami-gpu", "gpu", "x86_64", "2026-01-01"),
			image("ami-old", "capa-1.31.0-a", "x86_64", "2026-01-01"), image("ami-new1", "capa-1.31.0-b", "x86_64", "2026-02-01"),
			image("ami-new2", "capa-1.31.0-c", "x86_64", "2026-02-01"), image("ami-foreign", "capa-1.31.0-z", "x86_64", "2026-03-01"),
			{Image: observed.Image{ID: "ami-failed"}, State: "failed"},
		},
		owners:        map[string]string{"ami-old": "111", "ami-new1": "111", "ami-new2": "111", "ami-foreign": "666"},
		architectures: map[string][]string{"m5.large": {"x86_64"}, "m6g.large": {"arm64"}, "t2.micro": {"i386", "x86_64"}, "mac2.metal": {"arm64_mac"}},
		vpcs:          []resolve.VPC{{ID: "vpc-default", Default: true}, {ID: "vpc-web"}},
		subnets: []resolve.Subnet{
			subnet("subnet-a", "vpc-web", "eu-west-1a", false, capaTag+"web", "owned"),
			subnet("subnet-b", "vpc-web", "eu-west-1b", false, k8sTag+"web", "shared", capaTag+"web", "owned"),
			subnet("subnet-pub", "vpc-web", "eu-west-1a", true, capaTag+"web", "owned"),
			subnet("subnet-elb", "vpc-web", "eu-west-1b", false, capaTag+"web", "owned", "kubernetes.io/role/elb", "1"),
			subnet("subnet-cni", "vpc-web", "eu-west-1a", false, capaTag+"web", "owned", "sigs.k8s.io/cluster-api-provider-aws/association", "secondary"),
			subnet("subnet-edge", "vpc-web", "eu-west-1-lon-1a", false, capaTag+"web", "owned"),
			subnet("subnet-d1", "vpc-default", "eu-west-1a", true), subnet("subnet-d2", "vpc-default", "eu-west-1b", true),
		},
		groups: []resolve.SecurityGroup{
			{ID: "sg-node", VPCID: "vpc-web", Tags: map[string]string{capaTag + "web": "owned", roleTag: "node"}},
			{ID: "sg-lb", VPCID: "vpc-web", Tags: map[string]string{capaTag + "web": "owned", roleTag: "lb"}},
			{ID: "sg-bastion", VPCID: "vpc-web", Tags: map[string]string{capaTag + "web": "owned", roleTag: "bastion"}},
			{ID: "sg-default", Name: "default", VPCID: "vpc-default", Tags: map[string]string{}},
			{ID: "sg-x", Name: "extra", VPCID: "vpc-web", Tags: map[string]string{"team": "x"}},
		},
		clusters: map[string]observed.EKSCluster{
			"shop": {Name: "shop", Status: "ACTIVE", Version: "1.31", Endpoint: "https://e", CertificateAuthority: "Y2E=", VPCID: "vpc-default",
				SubnetIDs: []string{"subnet-d1", "subnet-d2"}, ClusterSecurityGroupID: "sg-eks", SecurityGroupIDs: []string{"sg-extra"}},
			"young": {Name: "young", Status: "CREATING"},
		},
		roles: map[string]resolve.Role{"nodes": {ARN: "arn:aws:iam::1:role/nodes", Path: "/"}},
	}
}

var (
	web   = intent.Cluster{Key: intent.Key{Namespace: "default", Name: "web"}, TagName: "web"}
	shop  = intent.Cluster{Key: intent.Key{Namespace: "default", Name: "shop"}, TagName: "shop", EKSName: "shop"}
	lone  = intent.Cluster{Key: intent.Key{Namespace: "default", Name: "lone"}, TagName: "lone"}
	ghost = intent.Cluster{Key: intent.Key{Namespace: "default", Name: "ghost"}, TagName: "ghost", EKSName: "ghost"}
)

func onlyDefault(f *fakeCloud) { f.vpcs = f.vpcs[:1] }

func short(a observed.Answer) string {
	var out []string
	if a.Image != nil {
		out = append(out, "image "+a.Image.ID)
	}
	if a.Subnets != nil {
		out = append(out, "subnets "+strings.Join(a.Subnets, " "))
	}
	if a.SecurityGroups != nil {
		out = append(out, "groups "+strings.Join(a.SecurityGroups, " "))
	}
	if a.Cluster != nil {
		out = append(out, "cluster "+a.Cluster.Name)
	}
	if a.RoleARN != "" {
		out = append(out, "role "+a.RoleARN)
	}
	if a.Warning != "" {
		out = append(out, "("+a.Code+")")
	}
	return strings.Join(out, " ")
}
