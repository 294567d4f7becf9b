package eks

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

// ClusterGraft is a copy of a cluster in another AWS.
type ClusterGraft struct{ Name, Version string }

// NodegroupGraft holds the facts of a nodegroup in another AWS. A call has already created the nodegroup
// here.
type NodegroupGraft struct {
	Cluster, Name    string
	Version, Release string
	Created          time.Time
}

// GraftCluster creates an ACTIVE cluster of any version in the default VPC.
func (r *Region) GraftCluster(g ClusterGraft) error {
	vpc := r.ec2.DefaultVPC()
	if vpc == nil {
		return fmt.Errorf("cluster %q: the region has no default VPC", g.Name)
	}
	c := r.Clusters.Get(g.Name)
	if c == nil {
		c = r.addCluster(&createClusterInput{Name: g.Name, Vpc: vpcConfig{Subnets: r.ec2.SubnetsOf(vpc.ID)}}, active)
	}
	c.Version, c.VpcID = g.Version, vpc.ID
	return nil
}

// GraftNodegroup sets the versions of a nodegroup. If its release is not the newest, its nodes run an image
// other than the newest.
func (r *Region) GraftNodegroup(g NodegroupGraft) error {
	c := r.Clusters.Get(g.Cluster)
	if c == nil || !c.Nodegroups.Has(g.Name) {
		return fmt.Errorf("nodegroup %q: the cluster %q has none", g.Name, g.Cluster)
	}
	ng := c.Nodegroups.Get(g.Name)
	if ng.Status != active {
		return fmt.Errorf("nodegroup %q of cluster %q is %s", g.Name, g.Cluster, ng.Status)
	}
	newest := ng.Version + "|" + ng.Release
	ng.Version, ng.Release, ng.Created = cmp.Or(g.Version, ng.Version), cmp.Or(g.Release, ng.Release), g.Created
	if hidden := r.ec2.LaunchTemplates.Get(ng.Hidden); hidden != nil && !ng.CustomImage && newest != ng.Version+"|"+ng.Release {
		r.ec2.GraftImage(ng.Hidden, hidden.Default, r.ec2.TrustedImage(strings.Join([]string{ng.AMIType, ng.Version, ng.Release}, "|")))
	}
	return nil
}

// trustedRelease returns the image of a release that is assumed to exist: the emulator's newest release, or
// otherwise a release that counts as newer than all others.
func (r *Region) trustedRelease(kind amiKind, amiType, version, release string) (imageID, found string, fault *wire.Error) {
	if release == "" {
		path := "/aws/service/eks/optimized-ami/" + version + "/" + kind.variant + "/recommended/release_version"
		if p := r.ssm.Find(path); p != nil {
			release = p.Value
		} else {
			release = version + ".99-20991231"
		}
	}
	return r.ec2.TrustedImage(strings.Join([]string{amiType, version, release}, "|")), release, nil
}
