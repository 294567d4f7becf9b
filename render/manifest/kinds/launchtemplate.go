package kinds

import (
	"fmt"
	"strings"

	rows "github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/lazyregexp"
	"github.com/weir-gitops/weir/render/strict"
	"go.yaml.in/yaml/v3"
)

// SSMPrefix is the prefix of an ami.id that names an SSM parameter. A version or label may follow the name
// (ImageId of RequestLaunchTemplateData in EC2's API). weir resolves the parameter, so that a new image is a
// planned rollout and every version has a fixed image.
const SSMPrefix = intent.ParameterPrefix

// ImageVariable matches what an imageLookupFormat may contain between double braces. CAPA accepts
// any Go template, but only these two variables exist in it.
var ImageVariable = lazyregexp.New(`\{\{-?\s*\.(\w+)\s*-?\}\}`)

// The kinds that a pool's spec.launchConfigRef may name.
const (
	KindLaunchConfig         = "AWSLaunchConfig"
	KindLaunchConfigTemplate = "AWSLaunchConfigTemplate"
)

// LaunchConfigRef names an object of the pool's namespace that declares its
// launch template, in place of awsLaunchTemplate.
type LaunchConfigRef struct {
	Kind string `json:"kind" check:"required" enum:"AWSLaunchConfig|AWSLaunchConfigTemplate"`
	Name string `json:"name" check:"required,minlen=1"`
}

// AWSLaunchConfigTemplateSpec is AWSLaunchConfigTemplate.spec: what the
// AWSLaunchConfigs that are derived of it hold. AWSLaunchConfig.spec is a
// LaunchTemplate.
type AWSLaunchConfigTemplateSpec struct {
	Template LaunchConfigTemplateResource `json:"template" check:"required"`
}

// LaunchConfigTemplateResource is spec.template of an AWSLaunchConfigTemplate.
type LaunchConfigTemplateResource struct {
	Spec LaunchTemplate `json:"spec"`
}

// LaunchTemplate is awsLaunchTemplate, which both pool kinds share. Fields
// marked with a version are not in the other one.
type LaunchTemplate struct {
	// Name is ignored by CAPA, which derives the template's name from the pool.
	Name                          string                        `json:"name"`
	IamInstanceProfile            string                        `json:"iamInstanceProfile"`
	AMI                           AMI                           `json:"ami"`
	ImageLookupFormat             string                        `json:"imageLookupFormat"`
	ImageLookupOrg                string                        `json:"imageLookupOrg"`
	ImageLookupBaseOS             string                        `json:"imageLookupBaseOS"`
	InstanceType                  string                        `json:"instanceType"`
	RootVolume                    *Volume                       `json:"rootVolume"`
	NonRootVolumes                []Volume                      `json:"nonRootVolumes" in:"v1beta2"`
	SSHKeyName                    *string                       `json:"sshKeyName"`
	VersionNumber                 *int64                        `json:"versionNumber"`
	AdditionalSecurityGroups      []AWSResourceReference        `json:"additionalSecurityGroups"`
	SpotMarketOptions             *SpotMarketOptions            `json:"spotMarketOptions"`
	InstanceMetadataOptions       *intent.MetadataOptions       `json:"instanceMetadataOptions" in:"v1beta2"`
	EnclaveOptions                *intent.EnclaveOptions        `json:"enclaveOptions" in:"v1beta2"`
	PrivateDNSName                *intent.PrivateDNSNameOptions `json:"privateDnsName" in:"v1beta2"`
	CapacityReservationID         *string                       `json:"capacityReservationId" in:"v1beta2"`
	MarketType                    string                        `json:"marketType" in:"v1beta2" enum:"OnDemand|Spot|CapacityBlock"`
	CapacityReservationPreference string                        `json:"capacityReservationPreference" in:"v1beta2" enum:"None|CapacityReservationsOnly|Open|"`
}

func (LaunchTemplate) unknownHint(name string) string {
	if at, _ := rows.InPool(rows.Template, name); len(at) > 1 {
		return fmt.Sprintf("EC2's %s is %q here", name, strings.Join(at[1:], "."))
	}
	if hasField[TemplateOptions](name) {
		return "write spec.launchTemplate." + name + " in a PoolOptions"
	}
	return machineOnly(name)
}

// machineOnly explains fields of CAPA's AWSMachine that its pools do not have.
func machineOnly(name string) string {
	switch name {
	case "cpuOptions", "networkInterfaces", "networkInterfaceType", "assignPrimaryIPv6", "publicIP",
		"elasticIpPool", "tenancy", "hostID", "hostAffinity", "dynamicHostAllocation", "placementGroupName",
		"placementGroupPartition", "cloudInit", "uncompressedUserData", "securityGroupOverrides":
		return "it is a field of AWSMachine; a pool's awsLaunchTemplate does not have it"
	}
	return ""
}

// AMI names the machine image: by id, or by the kind of EKS image to look up.
type AMI struct {
	ID            *string `json:"id"`
	EKSLookupType *string `json:"eksLookupType" enum:"AmazonLinux|AmazonLinuxGPU|AmazonLinux2023|AmazonLinux2023GPU"`
}

// Volume is a root or further volume. Size is in GiB, throughput in MiB/s.
type Volume struct {
	DeviceName    string `json:"deviceName"`
	Size          int64  `json:"size" check:"required,min=8,max=65536"`
	Type          string `json:"type"`
	IOPS          int64  `json:"iops" check:"min=0,max=2147483647"`
	Throughput    *int64 `json:"throughput" check:"max=2147483647"`
	Encrypted     *bool  `json:"encrypted"`
	EncryptionKey string `json:"encryptionKey"`
}

// SpotMarketOptions asks for spot instances. MaxPrice is in US dollars an hour.
type SpotMarketOptions struct {
	MaxPrice *string `json:"maxPrice"`
}

// AWSResourceReference names an AWS resource by id or by EC2 filters.
type AWSResourceReference struct {
	ID *string `json:"id"`
	// ARN was in v1beta1 and was never used by pools.
	ARN     *string  `json:"arn" in:"v1beta1"`
	Filters []Filter `json:"filters"`
}

// Filter is one EC2 filter.
type Filter struct {
	Name   string   `json:"name" check:"required"`
	Values []string `json:"values" check:"required"`
}

func IsLaunchConfig(kind string) bool {
	return kind == KindLaunchConfig || kind == KindLaunchConfigTemplate
}

// DecodeYAML decodes a reference. For a bare string, which an example of CAPA has, it reports what to write
// instead.
func (v *AWSResourceReference) DecodeYAML(d *strict.Decoder, n *yaml.Node, p intent.Path) {
	if s, ok := strict.Text(n); ok {
		d.Error(n, p, "wrong-type", p.String()+" must be a mapping, not text", "write `- id: "+s+"` instead of `- "+s+"`")
		return
	}
	type plain AWSResourceReference
	d.Read(n, (*plain)(v), p)
}
