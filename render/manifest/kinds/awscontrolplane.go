package kinds

import (
	"reflect"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/strict"
	"go.yaml.in/yaml/v3"
)

// AWSManagedControlPlaneSpec is AWSManagedControlPlane.spec: an EKS cluster. Of
// it, weir uses the name, the version, the network, the tags, the image lookup,
// the SSH key and the identity.
type AWSManagedControlPlaneSpec struct {
	EKSClusterName          string               `json:"eksClusterName"`
	IdentityRef             *IdentityReference   `json:"identityRef"`
	Network                 currentNetwork       `json:"network"`
	SecondaryCIDRBlock      *string              `json:"secondaryCidrBlock"`
	Region                  string               `json:"region"`
	Partition               string               `json:"partition" in:"v1beta2"`
	SSHKeyName              *string              `json:"sshKeyName"`
	Version                 *string              `json:"version"`
	RoleName                *string              `json:"roleName"`
	RolePath                string               `json:"rolePath" in:"v1beta2"`
	RolePermissionsBoundary string               `json:"rolePermissionsBoundary" in:"v1beta2"`
	RoleAdditionalPolicies  []string             `json:"roleAdditionalPolicies"`
	Logging                 *ControlPlaneLogging `json:"logging"`
	EncryptionConfig        *EncryptionConfig    `json:"encryptionConfig"`
	AdditionalTags          map[string]string    `json:"additionalTags"`
	IAMAuthenticatorConfig  *IAMAuthenticator    `json:"iamAuthenticatorConfig"`
	EndpointAccess          EndpointAccess       `json:"endpointAccess"`
	ControlPlaneEndpoint    Endpoint             `json:"controlPlaneEndpoint"`
	ImageLookup
	Bastion                    Bastion               `json:"bastion"`
	TokenMethod                *string               `json:"tokenMethod" default:"iam-authenticator"`
	AssociateOIDCProvider      bool                  `json:"associateOIDCProvider" default:"false"`
	Addons                     []Addon               `json:"addons"`
	OIDCIdentityProviderConfig *OIDCIdentityProvider `json:"oidcIdentityProviderConfig"`
	AccessConfig               *AccessConfig         `json:"accessConfig" in:"v1beta2"`
	AccessEntries              []AccessEntry         `json:"accessEntries" in:"v1beta2"`
	VPCCNI                     VPCCNI                `json:"vpcCni"`
	DisableVPCCNI              bool                  `json:"disableVPCCNI" in:"v1beta1" default:"false"`
	BootstrapSelfManagedAddons *bool                 `json:"bootstrapSelfManagedAddons" in:"v1beta2" default:"true"`
	RestrictPrivateSubnets     bool                  `json:"restrictPrivateSubnets" in:"v1beta2" default:"false"`
	KubeProxy                  KubeProxy             `json:"kubeProxy"`
	UpgradePolicy              string                `json:"upgradePolicy" in:"v1beta2"`
}

// currentNetwork is a Network in the v1beta2 format. As in CAPA, every version of the control plane uses this
// format.
type currentNetwork Network

// DecodeYAML decodes a Network in the v1beta2 format.
func (v *currentNetwork) DecodeYAML(d *strict.Decoder, n *yaml.Node, p intent.Path) {
	version := d.Version
	d.Version = "v1beta2"
	d.Read(n, (*Network)(v), p)
	d.Version = version
}

// Show returns the Network in the v1beta2 format.
func (v currentNetwork) Show(string) any { return language.Show(Network(v), "v1beta2", strings.Clone) }

func (*currentNetwork) schema(of schemer) *Schema {
	of.version = "v1beta2"
	return of.schema(reflect.TypeFor[Network]())
}

// ControlPlaneLogging says which logs EKS keeps.
type ControlPlaneLogging struct {
	APIServer         bool `json:"apiServer" default:"false"`
	Audit             bool `json:"audit" default:"false"`
	Authenticator     bool `json:"authenticator" default:"false"`
	ControllerManager bool `json:"controllerManager" default:"false"`
	Scheduler         bool `json:"scheduler" default:"false"`
}

// EncryptionConfig is the encryption of Kubernetes secrets.
type EncryptionConfig struct {
	Provider  *string   `json:"provider"`
	Resources []*string `json:"resources"`
}

// IAMAuthenticator maps IAM roles and users to Kubernetes users.
type IAMAuthenticator struct {
	MapRoles []RoleMapping `json:"mapRoles"`
	MapUsers []UserMapping `json:"mapUsers"`
}

// RoleMapping maps an IAM role.
type RoleMapping struct {
	RoleARN  string   `json:"rolearn" check:"required"`
	Username string   `json:"username" check:"required"`
	Groups   []string `json:"groups" check:"required"`
}

// UserMapping maps an IAM user.
type UserMapping struct {
	UserARN  string   `json:"userarn" check:"required"`
	Username string   `json:"username" check:"required"`
	Groups   []string `json:"groups" check:"required"`
}

// EndpointAccess says from where the API server is reached.
type EndpointAccess struct {
	Public      *bool     `json:"public"`
	PublicCIDRs []*string `json:"publicCIDRs"`
	Private     *bool     `json:"private"`
}

// Addon is an EKS add-on.
type Addon struct {
	Name                  string  `json:"name" check:"required"`
	Version               string  `json:"version" check:"required"`
	Configuration         string  `json:"configuration"`
	ConflictResolution    string  `json:"conflictResolution"`
	ServiceAccountRoleARN *string `json:"serviceAccountRoleARN"`
	PreserveOnDelete      bool    `json:"preserveOnDelete"`
}

// OIDCIdentityProvider is an OIDC provider for users.
type OIDCIdentityProvider struct {
	ClientID                   string            `json:"clientId" check:"required"`
	GroupsClaim                *string           `json:"groupsClaim"`
	GroupsPrefix               *string           `json:"groupsPrefix"`
	IdentityProviderConfigName string            `json:"identityProviderConfigName" check:"required"`
	IssuerURL                  string            `json:"issuerUrl" check:"required"`
	RequiredClaims             map[string]string `json:"requiredClaims"`
	UsernameClaim              *string           `json:"usernameClaim"`
	UsernamePrefix             *string           `json:"usernamePrefix"`
	Tags                       map[string]string `json:"tags"`
}

// AccessConfig is EKS's access configuration.
type AccessConfig struct {
	AuthenticationMode                      string `json:"authenticationMode" default:"config_map"`
	BootstrapClusterCreatorAdminPermissions *bool  `json:"bootstrapClusterCreatorAdminPermissions" default:"true"`
}

// AccessEntry is one entry of EKS's access list.
type AccessEntry struct {
	PrincipalARN     string         `json:"principalARN" check:"required"`
	Type             string         `json:"type" default:"standard"`
	KubernetesGroups []string       `json:"kubernetesGroups"`
	Username         string         `json:"username"`
	AccessPolicies   []AccessPolicy `json:"accessPolicies"`
}

// AccessPolicy is a policy of an access entry.
type AccessPolicy struct {
	PolicyARN   string      `json:"policyARN" check:"required"`
	AccessScope AccessScope `json:"accessScope" check:"required"`
}

// AccessScope bounds an access policy.
type AccessScope struct {
	Type       string   `json:"type" default:"cluster"`
	Namespaces []string `json:"namespaces"`
}

// VPCCNI is the configuration of the VPC network plugin.
type VPCCNI struct {
	Disable bool     `json:"disable" in:"v1beta2" default:"false"`
	Env     []EnvVar `json:"env"`
}

// EnvVar is an environment variable of the plugin's containers.
type EnvVar struct {
	Name      string   `json:"name" check:"required"`
	Value     string   `json:"value"`
	ValueFrom Anything `json:"valueFrom"`
}

// KubeProxy is the configuration of kube-proxy.
type KubeProxy struct {
	Disable bool `json:"disable" default:"false"`
}
