package manifest

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/userdata"
)

var bootstrapPath = path("spec", "template", "spec", "bootstrap")

// userData fills the user data of a pool's launch template.
func (b *builder) userData(d *draft) {
	boot := d.machinePool.Spec.Template.Spec.Bootstrap
	var data intent.UserData
	switch {
	case boot.DataSecretName != nil && *boot.DataSecretName == "" && boot.ConfigRef == nil:
		return // written and empty: the nodes need none
	case boot.ConfigRef != nil && intent.Value(boot.DataSecretName) != "" && b.writesConfig(d.Key.Namespace, boot.ConfigRef):
		d.mp.info(bootstrapPath.Join("dataSecretName"), "not-carried", bootstrapPath.Join("dataSecretName").String()+" has no effect: "+boot.ConfigRef.Kind+" "+boot.ConfigRef.Name+" says the user data",
			"Cluster API writes the name of the Secret that it makes there; remove it, or the configRef to use a Secret of your own")
		data = b.configData(d, boot.ConfigRef)
	case intent.Value(boot.DataSecretName) != "":
		data = b.secretData(d, *boot.DataSecretName)
	case boot.ConfigRef != nil:
		data = b.configData(d, boot.ConfigRef)
	}
	data.Merged = data.Text != "" && d.Nodegroup != nil && d.Nodegroup.AMIType != ""
	one := b.oneOf(data)
	if one.tooLarge != "" {
		b.userDataTooLarge(d, one.tooLarge)
	}
	d.checkReader(one.UserData)
	d.LaunchTemplate.UserData = one.UserData
}

// userData is user data with what keeps EC2 from taking it, if anything does.
type userData struct {
	intent.UserData
	tooLarge string
}

// maxTexts is how many bytes the user data of one render may have, each counted once:
// 2,000 pools with all that EC2 takes, twice. A bootstrap configuration is written
// out for each of its pools, and may compress to a hundredth.
const maxTexts = 64 << 20

// oneOf gives for equal user data the same text, looked at once, however many pools
// have it.
func (b *builder) oneOf(data intent.UserData) userData {
	one, known := b.userDatas[data]
	if known {
		return one
	}
	one.UserData = data
	if b.textBytes += len(data.Text); b.textBytes > maxTexts {
		one.Text, one.tooLarge = "", fmt.Sprintf("the pools' user data has more than %d MiB together", maxTexts>>20)
		return one
	}
	_, one.tooLarge = data.Encode(data.Text)
	b.userDatas[data] = one
	return one
}

// block adds a reason why the pool cannot be planned although it is valid. It
// is a warning here; planning makes an error of it.
func (d *draft) block(at intent.Path, r reporter, code, summary, detail string) {
	r.warn(at, code, summary, detail)
	d.Blocked = append(d.Blocked, r.to.list[len(r.to.list)-1].Diagnostic())
}

// writesConfig reports whether the bootstrap configuration that ref names is in the
// render.
func (b *builder) writesConfig(namespace string, ref *ObjectReference) bool {
	key := intent.Key{Namespace: namespace, Name: ref.Name}
	switch ref.Kind {
	case "KubeadmConfig":
		return b.index.kubeadm[key] != nil
	case "EKSConfig":
		return b.index.eks[key] != nil
	case "NodeadmConfig":
		return b.index.nodeadm[key] != nil
	}
	return false
}

// configData writes the user data of a bootstrap configuration.
func (b *builder) configData(d *draft, ref *ObjectReference) intent.UserData {
	key, at := intent.Key{Namespace: d.Key.Namespace, Name: ref.Name}, bootstrapPath.Join("configRef")
	switch ref.Kind {
	case "KubeadmConfig":
		if o, ok := b.index.kubeadm[key]; ok {
			if o.broken {
				checkKubeadmVersion(d.mp, d.version)
			}
			return fromConfig(b, d, o, b.kubeadmData)
		}
	case "EKSConfig":
		if o, ok := b.index.eks[key]; ok {
			return fromConfig(b, d, o, b.eksData)
		}
	case "NodeadmConfig":
		if o, ok := b.index.nodeadm[key]; ok {
			return fromConfig(b, d, o, b.nodeadmData)
		}
	default:
		detail := "it may be a KubeadmConfig, EKSConfig or NodeadmConfig"
		if strings.HasSuffix(ref.Kind, "Template") {
			detail = "a MachinePool refers to a configuration, not to a template of one"
		}
		d.mp.error(at.Join("kind"), "bootstrap-kind", fmt.Sprintf("bootstrap kind %s is not supported", ref.Kind), detail)
		return intent.UserData{}
	}
	b.dangling(d.mp, at.Join("name"), ref, diag.Error, "reference-not-found", "")
	return intent.UserData{}
}

// fromConfig derives user data from a configuration, unless it is broken: its
// own fault is reported, and the pool is dropped with it.
func fromConfig[S any](b *builder, d *draft, o *object[S], write func(*draft, *object[S], reporter) intent.UserData) intent.UserData {
	d.Bootstrap = o.ref()
	if o.broken {
		d.cluster = &cluster{key: d.cluster.key, broken: true, eks: d.cluster.eks, eksName: d.cluster.eksName}
		return intent.UserData{}
	}
	return write(d, o, o.reporter(d.faults))
}

// secretData takes user data from a rendered Secret.
func (b *builder) secretData(d *draft, name string) intent.UserData {
	at := bootstrapPath.Join("dataSecretName")
	value, ok := b.secretValue(d.mp, at, d.Key.Namespace, name, "value")
	if !ok {
		return intent.UserData{}
	}
	d.Bootstrap = b.index.secrets[intent.Key{Namespace: d.Key.Namespace, Name: name}].Ref
	format := "cloud-config"
	if o, ok := b.readSecret(d.mp, at, d.Key.Namespace, name); ok {
		if f, ok := o.value("format"); ok && f != "" {
			format = f
		}
	}
	switch {
	case format == "ignition":
		if version := userdata.IgnitionVersion(value); version == "" {
			d.mp.error(at, "bad-value", fmt.Sprintf("the value of Secret %q is no Ignition document", name), "it must be JSON with ignition.version")
		}
	case format != "cloud-config":
		d.mp.error(at, "bad-enum", fmt.Sprintf("the format of Secret %q is not known", name), `it must be "cloud-config" or "ignition"`)
	default:
		format = userdata.Detect(value)
	}
	if format == "mime" {
		if err := userdata.CheckMIME(value); err != nil {
			d.mp.warn(at, "user-data-mime", fmt.Sprintf("the MIME document in Secret %q is broken: %v", name, err), "correct it; what cannot be read of it has no effect, and EKS refuses it")
		}
	}
	return intent.UserData{Text: value, Format: format, Secret: true}
}

// secretValue returns one key of a Secret, or reports why it cannot.
func (b *builder) secretValue(r reporter, at intent.Path, namespace, name, key string) (string, bool) {
	s, ok := b.readSecret(r, at, namespace, name)
	if !ok {
		return "", false
	}
	value, ok := s.value(key)
	if !ok {
		r.error(at, "secret-key-not-found", fmt.Sprintf("Secret %s/%s has no key %q", namespace, name, key), "")
	}
	return value, ok
}

// value returns one key, stringData over data, as the API server merges them.
func (s *SecretData) value(key string) (string, bool) {
	if v, ok := s.StringData[key]; ok {
		return v, true
	}
	v, ok := s.Data[key]
	if !ok {
		return "", false
	}
	text, err := decodeBase64(v)
	return text, err == nil
}

func decodeBase64(v string) (string, error) {
	out, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(v), ""))
	return string(out), err
}

// readSecret decodes a Secret that something refers to. Secrets that nothing
// refers to are none of weir's business.
func (b *builder) readSecret(r reporter, at intent.Path, namespace, name string) (*SecretData, bool) {
	o, ok := b.index.secrets[intent.Key{Namespace: namespace, Name: name}]
	if !ok {
		b.dangling(r, at, &ObjectReference{Kind: "Secret", Name: name}, diag.Error, "secret-not-found", "render the Secret with the pool")
		return nil, false
	}
	var s SecretData
	var found faults
	decode(o, &found, &s)
	for k, v := range s.Data {
		if _, err := decodeBase64(v); err != nil {
			// The decoder's error may quote the value, so it is not shown.
			reporter{ref: o.Ref, to: &found}.error(path("data", k), "wrong-type", "data."+k+" is no base64", "write plain text under stringData")
		}
	}
	if !found.hasErrors() {
		return &s, true
	}
	for _, f := range found.list {
		f.Detail = "" // it may quote a secret value
		r.to.add(f)
	}
	return nil, false
}

// cloudInit resolves what is taken from Secrets. secret says that something was.
func (b *builder) cloudInit(r reporter, files []File, users []User, ntp *userdata.NTP, mounts [][]string) (out userdata.CloudInit, secret bool) {
	out = userdata.CloudInit{NTP: ntp, Mounts: slices.Clone(mounts)}
	for i, f := range files {
		at := path("spec", "files", intent.Index(i))
		if s := f.ContentFrom; s != nil {
			if f.Content != "" {
				r.error(at, "exclusive", at.String()+" has both content and contentFrom", "write one of them")
			}
			f.Content, _ = b.secretValue(r, at.Join("contentFrom", "secret"), r.ref.Namespace, s.Secret.Name, s.Secret.Key)
			secret = true
		}
		out.Files = append(out.Files, f.File)
	}
	for i, u := range users {
		at := path("spec", "users", intent.Index(i))
		if s := u.PasswdFrom; s != nil {
			if u.Passwd != nil {
				r.error(at, "exclusive", at.String()+" has both passwd and passwdFrom", "write one of them")
			}
			value, _ := b.secretValue(r, at.Join("passwdFrom", "secret"), r.ref.Namespace, s.Secret.Name, s.Secret.Key)
			u.Passwd, secret = &value, true
		}
		out.Users = append(out.Users, u.User)
	}
	return out, secret
}

// eksData writes an EKSConfig's cloud-config.
func (b *builder) eksData(d *draft, o *object[EKSConfigSpec], r reporter) intent.UserData {
	s := &o.Spec
	if !d.needEKS(o.Kind) {
		return intent.UserData{}
	}
	in := userdata.EKS{
		ClusterName: d.cluster.eksName, KubeletExtraArgs: s.KubeletExtraArgs, ContainerRuntime: intent.Value(s.ContainerRuntime),
		UseMaxPods: s.UseMaxPods, APIRetryAttempts: s.APIRetryAttempts, DNSClusterIP: intent.Value(s.DNSClusterIP), DockerConfigJSON: s.DockerConfigJSON,
		PreCommands: s.PreBootstrapCommands, PostCommands: s.PostBootstrapCommands, Command: intent.Value(s.BootstrapCommandOverride),
		ServiceIPv6CIDR: intent.Value(s.ServiceIPv6CIDR), IPv6: intent.Value(s.ServiceIPv6CIDR) != "",
	}
	if s.ServiceIPv6CIDR == nil && d.cluster.ipv6 != nil {
		in.IPv6, in.ServiceIPv6CIDR = true, d.cluster.ipv6.CIDRBlock
	}
	if s.PauseContainer != nil {
		in.PauseContainerAccount, in.PauseContainerVersion = s.PauseContainer.AccountNumber, s.PauseContainer.Version
	}
	checkBootstrapArgs(r, s)
	warnInactive(r, s.Users)
	var secret bool
	in.CloudInit, secret = b.cloudInit(r, s.Files, s.Users, s.NTP, s.Mounts)
	in.DiskSetup = s.DiskSetup.userData()
	return intent.UserData{Text: in.Text(), Format: "cloud-config", Secret: secret || s.DockerConfigJSON != nil}
}

// checkBootstrapArgs notes arguments of the kubelet that do not arrive as they
// are written: the script of the image puts them into a line of a systemd unit,
// which is cut at white space.
func checkBootstrapArgs(r reporter, s *EKSConfigSpec) {
	for _, name := range slices.Sorted(maps.Keys(s.KubeletExtraArgs)) {
		if at := path("spec", "kubeletExtraArgs", name); strings.ContainsAny(name+s.KubeletExtraArgs[name], " \t\r\n'\"\\") {
			r.warn(at, "kubelet-argument", at.String()+" holds white space, a quote or a backslash, which /etc/eks/bootstrap.sh does not keep", "write the setting in a file of the kubelet, or run a command of your own in preBootstrapCommands")
		}
	}
}

// nodeadmData writes a NodeadmConfig's MIME document. Endpoint and CA come from
// EKS, and so does the service CIDR where the Cluster does not write one.
func (b *builder) nodeadmData(d *draft, o *object[NodeadmConfigSpec], r reporter) intent.UserData {
	s := &o.Spec
	if !d.needEKS(o.Kind) {
		return intent.UserData{}
	}
	in := userdata.Nodeadm{
		ClusterName: d.cluster.eksName, APIServerEndpoint: intent.PlaceholderEndpoint, CertificateAuthority: intent.PlaceholderCA,
		ServiceCIDR: intent.PlaceholderServiceCIDR, FeatureGates: s.FeatureGates, PreCommands: s.PreNodeadmCommands,
	}
	if d.cluster.serviceCIDR != "" {
		in.ServiceCIDR = d.cluster.serviceCIDR
	}
	warnInactive(r, s.Users)
	if k := s.Kubelet; k != nil {
		in.KubeletConfig, in.KubeletFlags = k.Config.Value, k.Flags
	}
	if c := s.Containerd; c != nil {
		in.ContainerdConfig, in.BaseRuntimeSpec = c.Config, c.BaseRuntimeSpec.Value
	}
	var secret bool
	in.CloudInit, secret = b.cloudInit(r, s.Files, s.Users, s.NTP, s.Mounts)
	in.DiskSetup = s.DiskSetup.userData()
	out, err := in.Text()
	if errors.Is(err, userdata.ErrBoundary) {
		r.error(path("spec", "preNodeadmCommands"), "user-data-boundary", "spec.preNodeadmCommands cannot be put in a MIME document: "+err.Error(), "")
	} else if err != nil {
		r.error(path("spec"), "bad-value", err.Error(), "")
	}
	return intent.UserData{Text: out, Format: "mime", Secret: secret,
		Cluster: intent.Lookup{Kind: intent.EKSCluster, Name: d.cluster.eksName, Cluster: d.ClusterKey}}
}

// needEKS reports a configuration for EKS nodes in a cluster that is none.
func (d *draft) needEKS(kind string) bool {
	if !d.cluster.eks {
		d.mp.error(bootstrapPath.Join("configRef", "kind"), "not-eks", fmt.Sprintf("%s is for EKS nodes, but cluster %s is no EKS cluster", kind, d.ClusterKey),
			"the Cluster's controlPlaneRef must be an AWSManagedControlPlane, or the configuration a KubeadmConfig")
	}
	return d.cluster.eks
}
