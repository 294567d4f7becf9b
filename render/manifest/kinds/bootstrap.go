package kinds

import (
	"encoding/base64"
	"strings"
	"time"

	"github.com/weir-gitops/weir/render/userdata"
)

// CloudInit are the members that KubeadmConfig, EKSConfig and NodeadmConfig share.
type CloudInit struct {
	Files  []File        `json:"files"`
	Users  []User        `json:"users"`
	NTP    *userdata.NTP `json:"ntp"`
	Mounts [][]string    `json:"mounts"`
}

// File is a file to write, with its content given or taken from a Secret.
type File struct {
	userdata.File
	ContentFrom *SecretSource `json:"contentFrom"`
}

// User is a login to make, its password hash given or taken from a Secret.
type User struct {
	userdata.User
	PasswdFrom *SecretSource `json:"passwdFrom"`
}

// SecretSource takes a value from a Secret of the same namespace.
type SecretSource struct {
	Secret SecretKey `json:"secret" check:"required"`
}

// SecretKey names one key of a Secret.
type SecretKey struct {
	Name string `json:"name" check:"required,minlen=1"`
	Key  string `json:"key" check:"required,minlen=1"`
}

// DiskSetup partitions and formats disks.
type DiskSetup struct {
	Partitions  []EKSPartition  `json:"partitions"`
	Filesystems []EKSFilesystem `json:"filesystems"`
}

// EKSPartition describes a disk with one partition, or none.
type EKSPartition struct {
	partition
	Layout bool `json:"layout" check:"required"`
}

// EKSFilesystem is a file system whose label is required.
type EKSFilesystem struct {
	filesystem
	Label string `json:"label" check:"required"`
}

// KubeadmDiskSetup is DiskSetup with the members that KubeadmConfig adds.
type KubeadmDiskSetup struct {
	Partitions  []KubeadmPartition  `json:"partitions"`
	Filesystems []KubeadmFilesystem `json:"filesystems"`
}

// KubeadmPartition describes a disk with one partition, none, or those of DiskLayout. v1beta2 wants
// exactly one of Layout and DiskLayout.
type KubeadmPartition struct {
	partition
	Layout     *bool                    `json:"layout" check:"required=v1beta1"`
	DiskLayout []userdata.PartitionSpec `json:"diskLayout"`
}

// These aliases exist because an embedded Filesystem would hide the field of the same name.
type (
	filesystem = userdata.Filesystem
	partition  = userdata.Partition
)

// KubeadmFilesystem is a file system of a KubeadmConfig.
type KubeadmFilesystem struct {
	filesystem
	ReplaceFS *string `json:"replaceFS"`
}

// EKSConfigSpec is EKSConfig.spec: user data for Amazon Linux 2.
type EKSConfigSpec struct {
	KubeletExtraArgs map[string]string `json:"kubeletExtraArgs"`
	ContainerRuntime *string           `json:"containerRuntime"`
	DNSClusterIP     *string           `json:"dnsClusterIP"`
	DockerConfigJSON *string           `json:"dockerConfigJson"`
	APIRetryAttempts *int              `json:"apiRetryAttempts"`
	PauseContainer   *PauseContainer   `json:"pauseContainer"`
	UseMaxPods       *bool             `json:"useMaxPods"`
	ServiceIPv6CIDR  *string           `json:"serviceIPV6Cidr"`

	PreBootstrapCommands  []string `json:"preBootstrapCommands" in:"v1beta2"`
	PostBootstrapCommands []string `json:"postBootstrapCommands" in:"v1beta2"`
	// BootstrapCommandOverride is misspelt in CAPA's format.
	BootstrapCommandOverride *string    `json:"boostrapCommandOverride" in:"v1beta2"`
	DiskSetup                *DiskSetup `json:"diskSetup" in:"v1beta2"`
	CloudInit                `in:"v1beta2"`
}

// PauseContainer names the image of pause containers.
type PauseContainer struct {
	AccountNumber string `json:"accountNumber" check:"required"`
	Version       string `json:"version" check:"required"`
}

// NodeadmConfigSpec is NodeadmConfig.spec: user data for Amazon Linux 2023.
type NodeadmConfigSpec struct {
	Kubelet            *NodeadmKubelet    `json:"kubelet"`
	Containerd         *NodeadmContainerd `json:"containerd"`
	FeatureGates       map[string]bool    `json:"featureGates"`
	PreNodeadmCommands []string           `json:"preNodeadmCommands"`
	DiskSetup          *DiskSetup         `json:"diskSetup"`
	CloudInit
}

// NodeadmKubelet configures the kubelet.
type NodeadmKubelet struct {
	Config any      `json:"config"`
	Flags  []string `json:"flags"`
}

// NodeadmContainerd configures containerd; Config is TOML.
type NodeadmContainerd struct {
	Config          string `json:"config"`
	BaseRuntimeSpec any    `json:"baseRuntimeSpec"`
}

// KubeadmConfigSpec is KubeadmConfig.spec. A worker uses joinConfiguration only.
type KubeadmConfigSpec struct {
	ClusterConfiguration     *Anything          `json:"clusterConfiguration"`
	InitConfiguration        *Anything          `json:"initConfiguration"`
	JoinConfiguration        *JoinConfiguration `json:"joinConfiguration"`
	DiskSetup                *KubeadmDiskSetup  `json:"diskSetup"`
	BootCommands             []string           `json:"bootCommands" in:"v1beta1,v1beta2"`
	PreKubeadmCommands       []string           `json:"preKubeadmCommands"`
	PostKubeadmCommands      []string           `json:"postKubeadmCommands"`
	Format                   string             `json:"format"`
	Verbosity                *int32             `json:"verbosity"`
	UseExperimentalRetryJoin bool               `json:"useExperimentalRetryJoin" in:"v1beta1"`
	Ignition                 *KubeadmIgnition   `json:"ignition"`
	CloudInit
}

// KubeadmIgnition adds to Ignition user data.
type KubeadmIgnition struct {
	ContainerLinuxConfig *ContainerLinuxConfig `json:"containerLinuxConfig"`
}

// ContainerLinuxConfig is a Container Linux Config to merge.
type ContainerLinuxConfig struct {
	AdditionalConfig string `json:"additionalConfig"`
	Strict           bool   `json:"strict"`
}

// JoinConfiguration is kubeadm's, in the shapes of v1beta1 and v1beta2.
type JoinConfiguration struct {
	APIVersion       Anything         `json:"apiVersion" in:"v1beta1"`
	Kind             Anything         `json:"kind" in:"v1beta1"`
	NodeRegistration NodeRegistration `json:"nodeRegistration"`
	CACertPath       string           `json:"caCertPath"`
	Discovery        Discovery        `json:"discovery"`
	ControlPlane     *Anything        `json:"controlPlane"`
	SkipPhases       []string         `json:"skipPhases"`
	Patches          *Patches         `json:"patches"`
	Timeouts         *JoinTimeouts    `json:"timeouts" in:"v1beta2"`
}

// NodeRegistration says how the node registers.
type NodeRegistration struct {
	Name                  string       `json:"name"`
	CRISocket             string       `json:"criSocket"`
	Taints                *[]NodeTaint `json:"taints"`
	KubeletExtraArgs      kubeletArgs  `json:"kubeletExtraArgs"`
	IgnorePreflightErrors []string     `json:"ignorePreflightErrors"`
	ImagePullPolicy       string       `json:"imagePullPolicy"`
	ImagePullSerial       *bool        `json:"imagePullSerial"`
}

// NodeTaint is a taint that a node registers with.
type NodeTaint struct {
	userdata.Taint
	TimeAdded Anything `json:"timeAdded"`
}

// Discovery says how the node finds and trusts the control plane.
type Discovery struct {
	BootstrapToken    *BootstrapToken `json:"bootstrapToken"`
	File              *DiscoveryFile  `json:"file"`
	TLSBootstrapToken string          `json:"tlsBootstrapToken"`
	Timeout           *time.Duration  `json:"timeout" in:"v1beta1"`
}

// BootstrapToken is discovery by token.
type BootstrapToken struct {
	Token                    string   `json:"token"`
	APIServerEndpoint        string   `json:"apiServerEndpoint"`
	CACertHashes             []string `json:"caCertHashes"`
	UnsafeSkipCAVerification bool     `json:"unsafeSkipCAVerification"`
}

// DiscoveryFile is discovery by a file on the instance, which KubeConfig makes
// where it is written.
type DiscoveryFile struct {
	KubeConfigPath string         `json:"kubeConfigPath" check:"required"`
	KubeConfig     *DiscoveryKube `json:"kubeConfig"`
}

// DiscoveryKube is a kubeconfig to write: how to reach the cluster, and how a
// node proves who it is.
type DiscoveryKube struct {
	Cluster *DiscoveryCluster `json:"cluster"`
	User    *DiscoveryUser    `json:"user" check:"required"`
}

// DiscoveryCluster is a cluster of a kubeconfig. Server is by default the
// Cluster's endpoint.
type DiscoveryCluster struct {
	Server                   string `json:"server"`
	TLSServerName            string `json:"tlsServerName"`
	InsecureSkipTLSVerify    bool   `json:"insecureSkipTLSVerify"`
	CertificateAuthorityData string `json:"certificateAuthorityData"`
	ProxyURL                 string `json:"proxyURL"`
}

// DiscoveryUser is a user of a kubeconfig: one of its members is written.
type DiscoveryUser struct {
	AuthProvider *userdata.AuthProvider `json:"authProvider"`
	Exec         *userdata.AuthExec     `json:"exec"`
}

// Patches names the directory of kubeadm patches.
type Patches struct {
	Directory string `json:"directory"`
}

// JoinTimeouts are the timeouts of v1beta2, in seconds.
type JoinTimeouts struct {
	ControlPlaneComponentHealthCheckSeconds *int32 `json:"controlPlaneComponentHealthCheckSeconds"`
	KubeletHealthCheckSeconds               *int32 `json:"kubeletHealthCheckSeconds"`
	KubernetesAPICallSeconds                *int32 `json:"kubernetesAPICallSeconds"`
	EtcdAPICallSeconds                      *int32 `json:"etcdAPICallSeconds"`
	TLSBootstrapSeconds                     *int32 `json:"tlsBootstrapSeconds"`
	DiscoverySeconds                        *int32 `json:"discoverySeconds"`
}

// SecretData are the members of a v1 Secret.
type SecretData struct {
	head
	Type       string            `json:"type"`
	Immutable  bool              `json:"immutable"`
	Data       map[string]string `json:"data"`
	StringData map[string]string `json:"stringData"`
}

// UserData converts the setup to the form of package userdata.
func (s *DiskSetup) UserData() *userdata.DiskSetup {
	if s == nil {
		return nil
	}
	out := &userdata.DiskSetup{}
	for _, p := range s.Partitions {
		p.partition.Layout = p.Layout
		out.Partitions = append(out.Partitions, p.partition)
	}
	for _, f := range s.Filesystems {
		f.filesystem.Label = f.Label
		out.Filesystems = append(out.Filesystems, f.filesystem)
	}
	return out
}

// UserData converts the setup to the form of package userdata.
func (s *KubeadmDiskSetup) UserData() *userdata.DiskSetup {
	if s == nil {
		return nil
	}
	out := &userdata.DiskSetup{}
	for _, p := range s.Partitions {
		p.partition.Layout, p.partition.DiskLayout = p.Layout != nil && *p.Layout, p.DiskLayout
		out.Partitions = append(out.Partitions, p.partition)
	}
	for _, f := range s.Filesystems {
		f.filesystem.ReplaceFS = f.ReplaceFS
		out.Filesystems = append(out.Filesystems, f.filesystem)
	}
	return out
}

var BootstrapPath = path("spec", "template", "spec", "bootstrap")

// Value returns the value of a key. stringData has priority over data, as in the API server.
func (s *SecretData) Value(key string) (string, bool) {
	if v, ok := s.StringData[key]; ok {
		return v, true
	}
	v, ok := s.Data[key]
	if !ok {
		return "", false
	}
	text, err := DecodeBase64(v)
	return text, err == nil
}

func DecodeBase64(v string) (string, error) {
	out, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(v), ""))
	return string(out), err
}
