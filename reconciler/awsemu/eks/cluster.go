package eks

import (
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// Cluster is an EKS cluster.
type Cluster struct {
	Name, ARN, UUID   string
	Version           string
	RoleARN           string
	Status            string
	Created           time.Time
	Vpc               vpcConfig
	VpcID             string
	SecurityGroup     string // the cluster security group
	ServiceCIDR       string
	AuthMode          string
	CreatorAdmin      bool
	SupportType       string
	Protected         bool // deletion protection
	Endpoint          string
	Issuer            string
	CertificateData   string // base64 of PEM
	Tags              map[string]string
	Token             string
	Nodegroups        world.Table[*nodegroup]
	Updates           []*Update // oldest first
	NextVersion       string    // while UPDATING
	SelfManagedAddons bool
	Addons            map[string]Addon       `json:",omitempty"` // by name
	Access            map[string]AccessEntry `json:",omitempty"` // by principal
}

// vpcConfig holds the network settings of a cluster's control plane.
type vpcConfig struct {
	Subnets        []string `json:"subnetIds"`
	SecurityGroups []string `json:"securityGroupIds"`
	Public         *bool    `json:"endpointPublicAccess"`
	Private        *bool    `json:"endpointPrivateAccess"`
	PublicCIDRs    []string `json:"publicAccessCidrs"`
}

type createClusterInput struct {
	Name    string    `json:"name"`
	Version string    `json:"version"`
	RoleARN string    `json:"roleArn"`
	Vpc     vpcConfig `json:"resourcesVpcConfig"`
	Network struct {
		ServiceCIDR string `json:"serviceIpv4Cidr"`
		Family      string `json:"ipFamily"`
	} `json:"kubernetesNetworkConfig"`
	Access struct {
		Mode         string `json:"authenticationMode"`
		CreatorAdmin *bool  `json:"bootstrapClusterCreatorAdminPermissions"`
	} `json:"accessConfig"`
	Upgrade struct {
		Support string `json:"supportType"`
	} `json:"upgradePolicy"`
	SelfManaged *bool             `json:"bootstrapSelfManagedAddons"`
	Protection  bool              `json:"deletionProtection"`
	Tags        map[string]string `json:"tags"`
	Token       string            `json:"clientRequestToken"`
}

func createCluster(rq *request, in createClusterInput) (any, error) {
	r := rq.Region
	err := rq.Idempotent(in.Token, r.Clusters.Has, func() (string, error) {
		if err := in.check(r); err != nil {
			return "", err
		}
		c := r.addCluster(&in, creating)
		r.After(r.Timings().ClusterCreate, timerCluster, c.UUID+"/"+c.Name)
		rq.Reply = map[string]any{"cluster": c.out()}
		return c.Name, nil
	})
	return rq.Reply, err
}

func (in *createClusterInput) check(r *Region) *wire.Error {
	in.Version = cmp.Or(in.Version, ec2.NewestKubernetes())
	switch {
	case !validEKSName(in.Name, 100):
		return invalid("The cluster name '%s' is not valid: it starts with a letter or digit and holds letters, digits, hyphens and underscores.", in.Name)
	case r.Clusters.Has(in.Name):
		return wire.Fail("ResourceInUseException", "Cluster already exists with name: %s", in.Name).With("clusterName", in.Name)
	case r.Clusters.Len() >= r.Quota("clusters"):
		return wire.Fail("ResourceLimitExceededException", "The maximum number of clusters is %d", r.Quota("clusters"))
	case !slices.Contains(ec2.KubernetesVersions(), in.Version):
		return invalid("unsupported Kubernetes version: %s", in.Version)
	case in.RoleARN == "" || !r.iam.Entities.HasRoleARN(in.RoleARN):
		return invalid("Role with arn: %s, could not be assumed because it does not exist or the trusted entity is not correct", in.RoleARN)
	case in.Network.Family != "" && in.Network.Family != "ipv4":
		return invalid("The emulator has no clusters of ipFamily %s", in.Network.Family)
	}
	if cidr := in.Network.ServiceCIDR; cidr != "" {
		if p, err := netip.ParsePrefix(cidr); err != nil || !p.Addr().Is4() || p.Bits() < 12 || p.Bits() > 24 {
			return invalid("serviceIpv4Cidr %s must be an IPv4 block from /12 to /24", cidr)
		}
	}
	if err := checkEKSTags(in.Tags, r.Quota("tags")); err != nil {
		return err
	}
	return in.checkVpc(r)
}

func (in *createClusterInput) checkVpc(r *Region) *wire.Error {
	zones, vpc := map[string]bool{}, ""
	for _, id := range in.Vpc.Subnets {
		s := r.ec2.Subnets.Get(id)
		if s == nil {
			return invalid("The subnet ID '%s' does not exist", id)
		}
		if vpc != "" && vpc != s.VpcID {
			return invalid("Subnets %s must belong to the same VPC", strings.Join(in.Vpc.Subnets, ", "))
		}
		vpc = s.VpcID
		zones[s.Zone] = true
	}
	if len(zones) < 2 {
		return invalid("Subnets specified must be in at least two different AZs")
	}
	for _, id := range in.Vpc.SecurityGroups {
		if g := r.ec2.SecurityGroups.Get(id); g == nil || g.VpcID != vpc {
			return invalid("The security group ID '%s' does not exist in VPC %s", id, vpc)
		}
	}
	return nil
}

// addCluster stores the cluster of a valid request.
func (r *Region) addCluster(in *createClusterInput, status string) *Cluster {
	yes := true
	c := &Cluster{
		Name: in.Name, ARN: r.ARN("eks", "cluster/"+in.Name), UUID: r.NewUUID("cluster"), Version: in.Version, RoleARN: in.RoleARN,
		Status: status, Created: r.Now(), Vpc: in.Vpc, VpcID: r.ec2.Subnets.Get(in.Vpc.Subnets[0]).VpcID,
		ServiceCIDR: cmp.Or(in.Network.ServiceCIDR, "10.100.0.0/16"), AuthMode: cmp.Or(in.Access.Mode, "CONFIG_MAP"),
		CreatorAdmin: in.Access.CreatorAdmin == nil || *in.Access.CreatorAdmin, SupportType: cmp.Or(in.Upgrade.Support, "EXTENDED"),
		Protected: in.Protection, Tags: map[string]string{}, Token: in.Token, SelfManagedAddons: in.SelfManaged == nil || *in.SelfManaged,
	}
	for k, v := range in.Tags {
		c.Tags[k] = v
	}
	if c.Vpc.Public == nil {
		c.Vpc.Public = &yes
	}
	if c.Vpc.Private == nil {
		c.Vpc.Private = new(bool)
	}
	if len(c.Vpc.PublicCIDRs) == 0 && *c.Vpc.Public {
		c.Vpc.PublicCIDRs = []string{"0.0.0.0/0"}
	}
	id := strings.ToUpper(world.Hash("cluster|"+c.ARN, 32))
	c.Endpoint = "https://" + id + ".gr7." + r.Name + ".eks.amazonaws.com"
	c.Issuer = "https://oidc.eks." + r.Name + ".amazonaws.com/id/" + id
	c.CertificateData = clusterCertificate(c.ARN, c.Created)
	c.SecurityGroup = r.ec2.AddSecurityGroup("eks-cluster-sg-"+c.Name+"-"+world.Hash("eks-sg|"+c.ARN, 10),
		"EKS created security group applied to ENI that is attached to EKS Control Plane master nodes, as well as any managed workloads.", c.VpcID).ID
	r.Clusters.Put(c.Name, c)
	return c
}

// clusterCertificate creates a certificate authority. The same cluster always gets the same one.
func clusterCertificate(arn string, created time.Time) string {
	seed := sha256.Sum256([]byte("cluster-ca|" + arn))
	key := ed25519.NewKeyFromSeed(seed[:])
	ca := &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(seed[:8]), Subject: pkix.Name{CommonName: "kubernetes"},
		NotBefore: created, NotAfter: created.AddDate(10, 0, 0), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(nil, ca, ca, key.Public(), key)
	if err != nil {
		panic(fmt.Sprintf("create certificate: %v", err)) // the form of all inputs is constant
	}
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// Fill creates the ACTIVE cluster that every region has at the start.
func (r *Region) Fill() {
	if err := r.SeedCluster(ClusterSeed{Name: "demo"}); err != nil {
		panic(fmt.Sprintf("seed cluster: %v", err)) // the seed is complete
	}
}

// SeedCluster adds an ACTIVE cluster from a seed.
func (r *Region) SeedCluster(seed ClusterSeed) error {
	in := createClusterInput{
		Name: seed.Name, Version: seed.Version, Tags: seed.Tags,
		RoleARN: cmp.Or(seed.RoleARN, "arn:aws:iam::"+r.Account+":role/eks-controlplane.cluster-api-provider-aws.sigs.k8s.io"),
		Vpc:     vpcConfig{Subnets: seed.SubnetIDs, SecurityGroups: seed.SecurityGroupIDs},
	}
	if v := r.ec2.DefaultVPC(); len(in.Vpc.Subnets) == 0 && v != nil {
		in.Vpc.Subnets = r.ec2.SubnetsOf(v.ID)
	}
	in.Access.Mode = seed.AuthMode
	if err := in.check(r); err != nil {
		return err
	}
	if err := seed.check(in.Version); err != nil {
		return err
	}
	c := r.addCluster(&in, active)
	for _, a := range seed.Addons {
		a.Version = cmp.Or(a.Version, addonVersions(a.Name, in.Version)[0])
		if c.Addons == nil {
			c.Addons = map[string]Addon{}
		}
		c.Addons[a.Name] = a
	}
	for _, e := range seed.Access {
		e.Type = cmp.Or(e.Type, "STANDARD")
		if c.Access == nil {
			c.Access = map[string]AccessEntry{}
		}
		c.Access[e.Principal] = e
	}
	return nil
}

// check checks the fields of a seed that a request does not have.
func (s *ClusterSeed) check(version string) error {
	if m := s.AuthMode; m != "" && m != "API" && m != "API_AND_CONFIG_MAP" && m != "CONFIG_MAP" {
		return fmt.Errorf("authenticationMode %q is none", m)
	}
	for _, a := range s.Addons {
		if _, known := addonNames[a.Name]; !known || a.Version != "" && !slices.Contains(addonVersions(a.Name, version), a.Version) {
			return fmt.Errorf("add-on %s %s is not one of %v", a.Name, a.Version, addonVersions(a.Name, version))
		}
	}
	for _, e := range s.Access {
		for _, p := range e.Policies {
			if !slices.Contains(accessPolicies, p) {
				return fmt.Errorf("access policy %q is not one of %v", p, accessPolicies)
			}
		}
	}
	return nil
}

// out returns the cluster in the form of answers.
func (c *Cluster) out() map[string]any {
	out := map[string]any{
		"name": c.Name, "arn": c.ARN, "createdAt": wire.Epoch(c.Created), "version": c.Version, "roleArn": c.RoleARN, "status": c.Status,
		"resourcesVpcConfig": map[string]any{
			"subnetIds": orEmpty(c.Vpc.Subnets), "securityGroupIds": orEmpty(c.Vpc.SecurityGroups), "clusterSecurityGroupId": c.SecurityGroup,
			"vpcId": c.VpcID, "endpointPublicAccess": c.Vpc.Public, "endpointPrivateAccess": c.Vpc.Private, "publicAccessCidrs": orEmpty(c.Vpc.PublicCIDRs),
		},
		"kubernetesNetworkConfig": map[string]any{"serviceIpv4Cidr": c.ServiceCIDR, "ipFamily": "ipv4"},
		"accessConfig":            map[string]any{"authenticationMode": c.AuthMode, "bootstrapClusterCreatorAdminPermissions": c.CreatorAdmin},
		"upgradePolicy":           map[string]any{"supportType": c.SupportType},
		"platformVersion":         "eks.1", "tags": c.Tags, "health": map[string]any{"issues": []any{}}, "deletionProtection": c.Protected,
	}
	if c.Status != creating {
		out["endpoint"] = c.Endpoint
		out["certificateAuthority"] = map[string]any{"data": c.CertificateData}
		out["identity"] = map[string]any{"oidc": map[string]any{"issuer": c.Issuer}}
	}
	if c.Token != "" {
		out["clientRequestToken"] = c.Token
	}
	return out
}

func orEmpty(list []string) []string { return append([]string{}, list...) }

func describeCluster(rq *request, _ nothing) (any, error) {
	c, err := findCluster(rq.Region.Clusters, rq.Label("name"))
	if err != nil {
		return nil, err
	}
	return map[string]any{"cluster": c.out()}, nil
}

func listClusters(rq *request, _ nothing) (any, error) {
	page, next, err := namesPage(rq, rq.Region.Clusters.Sorted())
	if err != nil {
		return nil, err
	}
	return listOut("clusters", page, next), nil
}

func deleteCluster(rq *request, _ nothing) (any, error) {
	r := rq.Region
	c, err := findCluster(r.Clusters, rq.Label("name"))
	if err != nil {
		return nil, err
	}
	switch {
	case c.Protected:
		return nil, refused("Cluster %s has deletion protection", c.Name).With("clusterName", c.Name)
	case c.Nodegroups.Len() > 0:
		return nil, wire.Fail("ResourceInUseException", "Cluster has nodegroups attached").With("clusterName", c.Name)
	case c.Status == creating || c.Status == updating:
		return nil, wire.Fail("ResourceInUseException", "Cannot delete because cluster %s currently has an update in progress", c.Name).With("clusterName", c.Name)
	case c.Status == active:
		c.Status = deleting
		r.After(r.Timings().ClusterDelete, timerCluster, c.UUID+"/"+c.Name)
	}
	return map[string]any{"cluster": c.out()}, nil
}

// runCluster ends the temporary state of a cluster.
func runCluster(r *Region, key string) {
	uuid, name, _ := strings.Cut(key, "/")
	c := r.Clusters.Get(name)
	if c == nil || c.UUID != uuid {
		return
	}
	switch c.Status {
	case creating:
		c.Status = active
	case updating:
		c.Status, c.Version, c.NextVersion = active, c.NextVersion, ""
		c.Updates[len(c.Updates)-1].finish(nil)
	case deleting:
		r.ec2.SecurityGroups.Remove(c.SecurityGroup)
		r.Clusters.Remove(name)
	}
}

type updateClusterInput struct {
	Version string `json:"version"`
	Token   string `json:"clientRequestToken"`
	Force   bool   `json:"force"`
}

func updateClusterVersion(rq *request, in updateClusterInput) (any, error) {
	r := rq.Region
	name := rq.Label("name")
	err := rq.Idempotent(in.Token, r.Clusters.Has, func() (string, error) {
		c, err := findCluster(r.Clusters, name)
		if err != nil {
			return "", err
		}
		switch {
		case c.Status == updating:
			return "", wire.Fail("ResourceInUseException", "Cannot update because cluster %s currently has an update in progress", name).With("clusterName", name)
		case c.Status != active:
			return "", refused("Cluster %s is not in ACTIVE status", name).With("clusterName", name)
		case !slices.Contains(ec2.KubernetesVersions(), in.Version):
			return "", invalid("unsupported Kubernetes version: %s", in.Version).With("clusterName", name)
		case minorOf(in.Version) != minorOf(c.Version)+1:
			return "", invalid("Unsupported Kubernetes minor version update from %s to %s", c.Version, in.Version).With("clusterName", name)
		}
		u := r.newUpdate("VersionUpdate", []updateParam{{"Version", in.Version}, {"PlatformVersion", "eks.1"}})
		c.Status, c.NextVersion, c.Updates = updating, in.Version, append(c.Updates, u)
		r.After(r.Timings().ClusterCreate, timerCluster, c.UUID+"/"+c.Name)
		rq.Reply = u.out()
		return name, nil
	})
	return rq.Reply, err
}

// minorOf returns the minor number of a Kubernetes version such as 1.34.
func minorOf(version string) int64 {
	_, minor, _ := strings.Cut(version, ".")
	return wire.Data{"n": minor}.Integer("n")
}

// ClusterSeed describes an ACTIVE EKS cluster in a seed.
type ClusterSeed struct {
	Name             string            `json:"name"`
	Version          string            `json:"version"` // "": the newest
	RoleARN          string            `json:"roleArn"` // "": CAPA's default role
	SubnetIDs        []string          `json:"subnetIds"`
	SecurityGroupIDs []string          `json:"securityGroupIds"`
	AuthMode         string            `json:"authenticationMode"` // "": CONFIG_MAP
	Addons           []Addon           `json:"addons"`
	Access           []AccessEntry     `json:"accessEntries"`
	Tags             map[string]string `json:"tags"`
}
