package awsemu

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/netip"
	"strings"
	"time"
)

// eksCluster is an EKS cluster.
type eksCluster struct {
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
	Nodegroups        table[*nodegroup]
	Updates           []*eksUpdate // oldest first
	NextVersion       string       // while UPDATING
	SelfManagedAddons bool
}

// vpcConfig is where a cluster's control plane is reached.
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
	r := rq.region
	err := rq.idempotent(in.Token, r.EKS.Clusters.has, func() (string, error) {
		if err := in.check(r); err != nil {
			return "", err
		}
		c := r.addCluster(&in, eksCreating)
		r.after(r.timings().ClusterCreate, timerCluster, c.UUID+"/"+c.Name)
		rq.reply = map[string]any{"cluster": c.out()}
		return c.Name, nil
	})
	return rq.reply, err
}

func (in *createClusterInput) check(r *region) *apiError {
	in.Version = first(in.Version, newestKubernetes())
	switch {
	case !validEKSName(in.Name, 100):
		return eksInvalid("The cluster name '%s' is not valid: it starts with a letter or digit and holds letters, digits, hyphens and underscores.", in.Name)
	case r.EKS.Clusters.has(in.Name):
		return fail("ResourceInUseException", "Cluster already exists with name: %s", in.Name).with("clusterName", in.Name)
	case r.EKS.Clusters.len() >= r.quota("clusters"):
		return fail("ResourceLimitExceededException", "The maximum number of clusters is %d", r.quota("clusters"))
	case !contains(kubernetesVersions(), in.Version):
		return eksInvalid("unsupported Kubernetes version: %s", in.Version)
	case in.RoleARN == "" || !r.account().hasRoleARN(in.RoleARN):
		return eksInvalid("Role with arn: %s, could not be assumed because it does not exist or the trusted entity is not correct", in.RoleARN)
	case in.Network.Family != "" && in.Network.Family != "ipv4":
		return eksInvalid("The emulator has no clusters of ipFamily %s", in.Network.Family)
	}
	if cidr := in.Network.ServiceCIDR; cidr != "" {
		if p, err := netip.ParsePrefix(cidr); err != nil || !p.Addr().Is4() || p.Bits() < 12 || p.Bits() > 24 {
			return eksInvalid("serviceIpv4Cidr %s must be an IPv4 block from /12 to /24", cidr)
		}
	}
	if err := checkEKSTags(in.Tags, r.quota("tags")); err != nil {
		return err
	}
	return in.checkVpc(r)
}

func (in *createClusterInput) checkVpc(r *region) *apiError {
	zones, vpc := map[string]bool{}, ""
	for _, id := range in.Vpc.Subnets {
		s := r.EC2.Subnets.get(id)
		if s == nil {
			return eksInvalid("The subnet ID '%s' does not exist", id)
		}
		if vpc != "" && vpc != s.VpcID {
			return eksInvalid("Subnets %s must belong to the same VPC", strings.Join(in.Vpc.Subnets, ", "))
		}
		vpc = s.VpcID
		zones[s.Zone] = true
	}
	if len(zones) < 2 {
		return eksInvalid("Subnets specified must be in at least two different AZs")
	}
	for _, id := range in.Vpc.SecurityGroups {
		if g := r.EC2.SecurityGroups.get(id); g == nil || g.VpcID != vpc {
			return eksInvalid("The security group ID '%s' does not exist in VPC %s", id, vpc)
		}
	}
	return nil
}

// addCluster stores a cluster of a checked request.
func (r *region) addCluster(in *createClusterInput, status string) *eksCluster {
	yes := true
	c := &eksCluster{
		Name: in.Name, ARN: r.arn("eks", "cluster/"+in.Name), UUID: r.newUUID("cluster"), Version: in.Version, RoleARN: in.RoleARN,
		Status: status, Created: r.now(), Vpc: in.Vpc, VpcID: r.EC2.Subnets.get(in.Vpc.Subnets[0]).VpcID,
		ServiceCIDR: first(in.Network.ServiceCIDR, "10.100.0.0/16"), AuthMode: first(in.Access.Mode, "CONFIG_MAP"),
		CreatorAdmin: in.Access.CreatorAdmin == nil || *in.Access.CreatorAdmin, SupportType: first(in.Upgrade.Support, "EXTENDED"),
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
	id := strings.ToUpper(hashHex("cluster|"+c.ARN, 32))
	c.Endpoint = "https://" + id + ".gr7." + r.Name + ".eks.amazonaws.com"
	c.Issuer = "https://oidc.eks." + r.Name + ".amazonaws.com/id/" + id
	c.CertificateData = clusterCertificate(c.ARN, c.Created)
	c.SecurityGroup = r.addSecurityGroup("eks-cluster-sg-"+c.Name+"-"+hashHex("eks-sg|"+c.ARN, 10),
		"EKS created security group applied to ENI that is attached to EKS Control Plane master nodes, as well as any managed workloads.", c.VpcID).ID
	r.EKS.Clusters.put(c.Name, c)
	return c
}

// clusterCertificate makes a certificate authority, the same for the same cluster.
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
		panic(fmt.Sprintf("create certificate: %v", err)) // all inputs are constant in form
	}
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// seedDemoCluster makes the ACTIVE cluster that every region comes with.
func seedDemoCluster(r *region) {
	if err := r.seedCluster(seedCluster{Name: "demo"}); err != nil {
		panic(fmt.Sprintf("seed cluster: %v", err)) // the seed holds all that it needs
	}
}

// seedCluster adds an ACTIVE cluster of a seed.
func (r *region) seedCluster(seed seedCluster) error {
	in := createClusterInput{
		Name: seed.Name, Version: seed.Version, Tags: seed.Tags,
		RoleARN: first(seed.RoleARN, "arn:aws:iam::"+r.Account+":role/eks-controlplane.cluster-api-provider-aws.sigs.k8s.io"),
		Vpc:     vpcConfig{Subnets: seed.SubnetIDs, SecurityGroups: seed.SecurityGroupIDs},
	}
	if v := r.defaultVPC(); len(in.Vpc.Subnets) == 0 && v != nil {
		in.Vpc.Subnets = r.subnetsOf(v.ID)
	}
	if err := in.check(r); err != nil {
		return err
	}
	r.addCluster(&in, eksActive)
	return nil
}

// out is the cluster as answers show it.
func (c *eksCluster) out() map[string]any {
	out := map[string]any{
		"name": c.Name, "arn": c.ARN, "createdAt": epoch(c.Created), "version": c.Version, "roleArn": c.RoleARN, "status": c.Status,
		"resourcesVpcConfig": map[string]any{
			"subnetIds": orEmpty(c.Vpc.Subnets), "securityGroupIds": orEmpty(c.Vpc.SecurityGroups), "clusterSecurityGroupId": c.SecurityGroup,
			"vpcId": c.VpcID, "endpointPublicAccess": c.Vpc.Public, "endpointPrivateAccess": c.Vpc.Private, "publicAccessCidrs": orEmpty(c.Vpc.PublicCIDRs),
		},
		"kubernetesNetworkConfig": map[string]any{"serviceIpv4Cidr": c.ServiceCIDR, "ipFamily": "ipv4"},
		"accessConfig":            map[string]any{"authenticationMode": c.AuthMode, "bootstrapClusterCreatorAdminPermissions": c.CreatorAdmin},
		"upgradePolicy":           map[string]any{"supportType": c.SupportType},
		"platformVersion":         "eks.1", "tags": c.Tags, "health": map[string]any{"issues": []any{}}, "deletionProtection": c.Protected,
	}
	if c.Status != eksCreating {
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
	c, err := rq.region.findCluster(rq.label("name"))
	if err != nil {
		return nil, err
	}
	return map[string]any{"cluster": c.out()}, nil
}

func listClusters(rq *request, _ nothing) (any, error) {
	page, next, err := rq.names(rq.region.EKS.Clusters.sorted())
	if err != nil {
		return nil, err
	}
	return listOut("clusters", page, next), nil
}

func deleteCluster(rq *request, _ nothing) (any, error) {
	r := rq.region
	c, err := r.findCluster(rq.label("name"))
	if err != nil {
		return nil, err
	}
	switch {
	case c.Protected:
		return nil, eksRefused("Cluster %s has deletion protection", c.Name).with("clusterName", c.Name)
	case c.Nodegroups.len() > 0:
		return nil, fail("ResourceInUseException", "Cluster has nodegroups attached").with("clusterName", c.Name)
	case c.Status == eksCreating || c.Status == eksUpdating:
		return nil, fail("ResourceInUseException", "Cannot delete because cluster %s currently has an update in progress", c.Name).with("clusterName", c.Name)
	case c.Status == eksActive:
		c.Status = eksDeleting
		r.after(r.timings().ClusterDelete, timerCluster, c.UUID+"/"+c.Name)
	}
	return map[string]any{"cluster": c.out()}, nil
}

// runCluster ends the state that a cluster passes through.
func runCluster(r *region, key string) {
	uuid, name, _ := strings.Cut(key, "/")
	c := r.EKS.Clusters.get(name)
	if c == nil || c.UUID != uuid {
		return
	}
	switch c.Status {
	case eksCreating:
		c.Status = eksActive
	case eksUpdating:
		c.Status, c.Version, c.NextVersion = eksActive, c.NextVersion, ""
		c.Updates[len(c.Updates)-1].finish(nil)
	case eksDeleting:
		r.EC2.SecurityGroups.remove(c.SecurityGroup)
		r.EKS.Clusters.remove(name)
	}
}

type updateClusterInput struct {
	Version string `json:"version"`
	Token   string `json:"clientRequestToken"`
	Force   bool   `json:"force"`
}

func updateClusterVersion(rq *request, in updateClusterInput) (any, error) {
	r := rq.region
	name := rq.label("name")
	err := rq.idempotent(in.Token, r.EKS.Clusters.has, func() (string, error) {
		c, err := r.findCluster(name)
		if err != nil {
			return "", err
		}
		switch {
		case c.Status == eksUpdating:
			return "", fail("ResourceInUseException", "Cannot update because cluster %s currently has an update in progress", name).with("clusterName", name)
		case c.Status != eksActive:
			return "", eksRefused("Cluster %s is not in ACTIVE status", name).with("clusterName", name)
		case !contains(kubernetesVersions(), in.Version):
			return "", eksInvalid("unsupported Kubernetes version: %s", in.Version).with("clusterName", name)
		case minorOf(in.Version) != minorOf(c.Version)+1:
			return "", eksInvalid("Unsupported Kubernetes minor version update from %s to %s", c.Version, in.Version).with("clusterName", name)
		}
		u := r.newUpdate("VersionUpdate", []updateParam{{"Version", in.Version}, {"PlatformVersion", "eks.1"}})
		c.Status, c.NextVersion, c.Updates = eksUpdating, in.Version, append(c.Updates, u)
		r.after(r.timings().ClusterCreate, timerCluster, c.UUID+"/"+c.Name)
		rq.reply = u.out()
		return name, nil
	})
	return rq.reply, err
}

// minorOf is the minor number of a Kubernetes version such as 1.34.
func minorOf(version string) int64 {
	_, minor, _ := strings.Cut(version, ".")
	return ltData{"n": minor}.integer("n")
}
