// Package elb emulates the reads of target groups in Elastic Load Balancing. Target groups come from a seed.
// The emulator does not balance load, and an Auto Scaling group may use a target group that does not exist.
package elb

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
	"github.com/weir-gitops/weir/render/lazyregexp"
)

// Region is the Elastic Load Balancing part of a region.
type Region struct {
	*world.Region `json:"-"`

	TargetGroups world.Table[*TargetGroup] // by ARN
}

// TargetGroup is a destination of a load balancer's requests.
type TargetGroup struct {
	ARN      string
	Name     string
	Protocol string
	Port     int64
	VpcID    string
	Type     string // instance or ip
}

// request is a call to the service.
type request = wire.Request[*Region]

// Service returns Elastic Load Balancing's reads of target groups.
func Service() *wire.Service {
	return wire.NewService("elasticloadbalancing", wire.QueryDialect(),
		wire.FormOp("DescribeTargetGroups", wire.Reads, describeTargetGroups),
	)
}

// Join connects the region, which is new or was read from JSON, with the shared part of the region.
func (r *Region) Join(base *world.Region) { r.Region = base }

// Seed is a target group of a seed.
type Seed struct {
	Name     string `json:"name"`
	VpcID    string `json:"vpc"`
	Protocol string `json:"protocol"` // "": HTTP
	Port     int64  `json:"port"`     // 0: 80
	Type     string `json:"type"`     // "": instance
}

// ARNOf returns the ARN of a seed's target group with the name.
func (r *Region) ARNOf(name string) string {
	return r.ARN("elasticloadbalancing", "targetgroup/"+name+"/"+world.Hash("target-group|"+r.Account+"|"+r.Name+"|"+name, 16))
}

// Apply adds a target group from a seed. knownVPC reports whether a VPC exists.
func (r *Region) Apply(s Seed, knownVPC func(id string) bool) error {
	g := &TargetGroup{
		ARN: r.ARNOf(s.Name), Name: s.Name, VpcID: s.VpcID, Protocol: cmp.Or(s.Protocol, "HTTP"), Port: cmp.Or(s.Port, 80), Type: cmp.Or(s.Type, "instance"),
	}
	switch {
	case r.TargetGroups.Has(g.ARN):
		return nil
	case s.Name == "" || len(s.Name) > 32:
		return errors.New("its name has no characters or more than 32")
	case !knownVPC(s.VpcID):
		return fmt.Errorf("its vpc %q is unknown", s.VpcID)
	case !slices.Contains([]string{"HTTP", "HTTPS", "TCP", "TLS", "UDP", "TCP_UDP"}, g.Protocol) || g.Port < 1 || g.Port > 65535 || g.Type != "instance" && g.Type != "ip":
		return fmt.Errorf("its protocol %s, port %d or type %s is none", g.Protocol, g.Port, g.Type)
	}
	r.TargetGroups.Put(g.ARN, g)
	return nil
}

type describeInput struct {
	LoadBalancerArn, Marker string
	TargetGroupArns, Names  []string
	PageSize                *int64
}

var targetGroupARN = lazyregexp.New(`^arn:[^:]+:elasticloadbalancing:[^:]+:[0-9]{12}:targetgroup/[^/]+/[0-9a-f]{16}$`)

func describeTargetGroups(rq *request, in describeInput) error {
	r := rq.Region
	ways := 0
	for _, given := range []bool{in.LoadBalancerArn != "", len(in.TargetGroupArns) > 0, len(in.Names) > 0} {
		if given {
			ways++
		}
	}
	switch {
	case ways > 1:
		return wire.Fail("ValidationError", "You can specify only one of load balancer ARN, target group ARNs and target group names")
	case in.LoadBalancerArn != "":
		return wire.Fail("LoadBalancerNotFound", "One or more load balancers not found")
	}
	named := map[string]bool{}
	for _, arn := range r.TargetGroups.Sorted() {
		named[r.TargetGroups.Get(arn).Name] = true
	}
	for _, arn := range in.TargetGroupArns {
		if !targetGroupARN.MatchString(arn) {
			return wire.Fail("ValidationError", "'%s' is not a valid target group ARN", arn)
		}
	}
	for _, arn := range in.TargetGroupArns {
		if !r.TargetGroups.Has(arn) {
			return notFound()
		}
	}
	for _, name := range in.Names {
		if !named[name] {
			return notFound()
		}
	}
	limit := int64(400)
	if in.PageSize != nil {
		limit = *in.PageSize
	}
	w := &rq.XML
	w.Open("TargetGroups")
	next, err := rq.Page(r.TargetGroups.Sorted(), in.Marker, int(limit), func(arn string) bool {
		g := r.TargetGroups.Get(arn)
		if len(in.TargetGroupArns) > 0 && !slices.Contains(in.TargetGroupArns, arn) || len(in.Names) > 0 && !slices.Contains(in.Names, g.Name) {
			return false
		}
		w.Open("member")
		g.write(w)
		w.Close("member")
		return true
	})
	if err != nil {
		return wire.Fail("ValidationError", "Unable to parse the marker")
	}
	w.Close("TargetGroups")
	w.Optional("NextMarker", next)
	return nil
}

func notFound() *wire.Error {
	return wire.Fail("TargetGroupNotFound", "One or more target groups not found")
}

func (g *TargetGroup) write(w *wire.XML) {
	w.Text("TargetGroupArn", g.ARN)
	w.Text("TargetGroupName", g.Name)
	w.Text("Protocol", g.Protocol)
	w.Integer("Port", g.Port)
	w.Text("VpcId", g.VpcID)
	w.Boolean("HealthCheckEnabled", true)
	w.Integer("HealthCheckIntervalSeconds", 30)
	w.Text("HealthCheckPort", "traffic-port")
	if g.Protocol == "HTTP" || g.Protocol == "HTTPS" {
		w.Text("HealthCheckProtocol", g.Protocol)
		w.Text("HealthCheckPath", "/")
		w.Integer("HealthCheckTimeoutSeconds", 5)
		w.Open("Matcher")
		w.Text("HttpCode", "200")
		w.Close("Matcher")
		w.Text("ProtocolVersion", "HTTP1")
	} else {
		w.Text("HealthCheckProtocol", "TCP")
		w.Integer("HealthCheckTimeoutSeconds", 10)
	}
	w.Integer("HealthyThresholdCount", 5)
	w.Integer("UnhealthyThresholdCount", 2)
	w.Texts("LoadBalancerArns", "member", nil)
	w.Text("TargetType", g.Type)
	w.Text("IpAddressType", "ipv4")
}
