package derive

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/manifest/rules"
	"github.com/weir-gitops/weir/render/userdata"
)

// writer writes the user data of pools.
type writer struct {
	objects
	// known has all distinct user data of the pools. bytes is the total size of the texts.
	known map[intent.UserData]userData
	bytes int
	// anySize accepts user data that exceeds EC2's limit.
	anySize bool
	// judged is Options.Judged.
	judged func(intent.ObjectRef) Judgement
}

// judgement returns how to check the text of a Secret.
func (w *writer) judgement(secret intent.ObjectRef) (j Judgement) {
	if w.judged != nil {
		j = w.judged(secret)
	}
	return j
}

// userData sets the user data of a pool's launch template, from the Secret or the bootstrap configuration
// that the MachinePool names. An empty dataSecretName without a configRef means that the nodes need none.
func (w *writer) userData(d *draft) {
	boot := d.Source.Spec.Template.Spec.Bootstrap
	var data intent.UserData
	switch {
	case boot.DataSecretName != nil && *boot.DataSecretName == "" && boot.ConfigRef == nil:
		return // written and empty, so the nodes need no user data
	case boot.ConfigRef != nil && intent.Value(boot.DataSecretName) != "" && w.writesConfig(d.Key.Namespace, boot.ConfigRef):
		d.AtMachinePool.Info(kinds.BootstrapPath.Join("dataSecretName"), "not-carried", kinds.BootstrapPath.Join("dataSecretName").String()+" has no effect: "+boot.ConfigRef.Kind+" "+boot.ConfigRef.Name+" says the user data",
			"Cluster API writes the name of its own Secret there; remove it, or remove the configRef to use a Secret of your own")
		data = w.configData(d, boot.ConfigRef)
	case intent.Value(boot.DataSecretName) != "":
		data = w.secretData(d, *boot.DataSecretName)
	case boot.ConfigRef != nil:
		data = w.configData(d, boot.ConfigRef)
	}
	data.Merged = data.Text != "" && d.merged()
	one := w.oneOf(data)
	if one.tooLarge != "" {
		w.userDataTooLarge(d, one.tooLarge)
	}
	d.CheckReader(one.UserData)
	d.LaunchTemplate.UserData = one.UserData
}

// merged reports whether EKS merges its own user data into the pool's. It does if it chooses the image.
func (d *draft) merged() bool { return d.Nodegroup != nil && d.Nodegroup.AMIType != "" }

// userData is user data and the reason why EC2 would refuse it, or "".
type userData struct {
	intent.UserData
	tooLarge string
}

// maxTexts bounds the bytes of distinct user data in one render. It is enough for 2,000 pools with twice
// EC2's maximum. A bootstrap configuration is expanded for each of its pools, and may compress to a
// hundredth.
const maxTexts = 64 << 20

// oneOf returns the stored copy of equal user data, so that it is checked only once for all pools.
func (w *writer) oneOf(data intent.UserData) userData {
	one, known := w.known[data]
	if known {
		return one
	}
	one.UserData = data
	if w.bytes += len(data.Text); w.bytes > maxTexts {
		one.Text, one.tooLarge = "", fmt.Sprintf("the pools' user data has more than %d MiB together", maxTexts>>20)
		return one
	}
	if !w.anySize {
		_, one.tooLarge = data.Encode(data.Text)
	}
	w.known[data] = one
	return one
}

// block adds a reason why a valid pool cannot be planned. It is a warning here, and an error in plans.
func (d *draft) block(at intent.Path, r kinds.Reporter, code, summary, detail string) {
	r.Warn(at, code, summary, detail)
	d.Blocked = append(d.Blocked, r.To.List[len(r.To.List)-1].Diagnostic())
}

// writesConfig reports whether the bootstrap configuration of ref is in the render.
func (w *writer) writesConfig(namespace string, ref *kinds.ObjectReference) bool {
	key := intent.Key{Namespace: namespace, Name: ref.Name}
	switch ref.Kind {
	case "KubeadmConfig":
		return w.index.KubeadmConfigs[key] != nil
	case "EKSConfig":
		return w.index.EKSConfigs[key] != nil
	case "NodeadmConfig":
		return w.index.NodeadmConfigs[key] != nil
	}
	return false
}

// configData returns the user data of a bootstrap configuration.
func (w *writer) configData(d *draft, ref *kinds.ObjectReference) intent.UserData {
	key, at := intent.Key{Namespace: d.Key.Namespace, Name: ref.Name}, kinds.BootstrapPath.Join("configRef")
	switch ref.Kind {
	case "KubeadmConfig":
		if o, ok := w.index.KubeadmConfigs[key]; ok {
			if o.Broken {
				rules.CheckKubeadmVersion(d.AtMachinePool, d.version)
			}
			return fromConfig(w, d, o, w.kubeadmData)
		}
	case "EKSConfig":
		if o, ok := w.index.EKSConfigs[key]; ok {
			return fromConfig(w, d, o, w.eksData)
		}
	case "NodeadmConfig":
		if o, ok := w.index.NodeadmConfigs[key]; ok {
			return fromConfig(w, d, o, w.nodeadmData)
		}
	default:
		detail := "it may be a KubeadmConfig, EKSConfig or NodeadmConfig"
		if strings.HasSuffix(ref.Kind, "Template") {
			detail = "a MachinePool refers to a configuration, not to a template of one"
		}
		d.AtMachinePool.Error(at.Join("kind"), "bootstrap-kind", fmt.Sprintf("bootstrap kind %s is not supported", ref.Kind), detail)
		return intent.UserData{}
	}
	w.dangling(d.AtMachinePool, at.Join("name"), ref, diag.Error, "reference-not-found", "")
	return intent.UserData{}
}

// fromConfig derives user data from a configuration. If the configuration is broken, its own fault was
// reported and the pool is dropped.
func fromConfig[S any](w *writer, d *draft, o *kinds.Decoded[S], write func(*draft, *kinds.Decoded[S], kinds.Reporter) intent.UserData) intent.UserData {
	d.Bootstrap = o.Ref()
	if o.Broken {
		d.broken = true
		return intent.UserData{}
	}
	return write(d, o, o.Reporter(d.Faults))
}

// secretData returns the user data in the Secret with the given name, which must be in the render. The user
// data is empty after a fault. Without a format in the Secret, the format is detected from the text.
func (w *writer) secretData(d *draft, name string) intent.UserData {
	at := kinds.BootstrapPath.Join("dataSecretName")
	value, ok := w.secretValue(d.AtMachinePool, at, d.Key.Namespace, name, "value")
	if !ok {
		return intent.UserData{}
	}
	d.Bootstrap = w.index.Secrets[intent.Key{Namespace: d.Key.Namespace, Name: name}].Ref
	format := "cloud-config"
	if o, ok := w.readSecret(d.AtMachinePool, at, d.Key.Namespace, name); ok {
		if f, ok := o.Value("format"); ok && f != "" {
			format = f
		}
	}
	judged := w.judgement(d.Bootstrap)
	switch {
	case format == "ignition":
		if version := userdata.IgnitionVersion(value); version == "" && !judged.AnyForm {
			d.AtMachinePool.Error(at, "bad-value", fmt.Sprintf("the value of Secret %q is not an Ignition document", name), "it must be JSON with ignition.version")
		}
	case format != "cloud-config":
		d.AtMachinePool.Error(at, "bad-enum", fmt.Sprintf("the format of Secret %q is unknown", name), `it must be "cloud-config" or "ignition"`)
	default:
		if format = judged.Format; format == "" {
			format = userdata.Detect(value)
		}
	}
	if format == "mime" && !d.merged() && !judged.AnyForm {
		if err := userdata.CheckMIME(value); err != nil {
			d.AtMachinePool.Warn(at, "user-data-mime", fmt.Sprintf("the MIME document in Secret %q is broken: %v", name, err), "correct it; the parts that cannot be read have no effect")
		}
	}
	return intent.UserData{Text: value, Format: format, Secret: true}
}

// secretValue returns the value of a key in a Secret, or reports a fault.
func (w *writer) secretValue(r kinds.Reporter, at intent.Path, namespace, name, key string) (string, bool) {
	s, ok := w.readSecret(r, at, namespace, name)
	if !ok {
		return "", false
	}
	value, ok := s.Value(key)
	if !ok {
		r.Error(at, "secret-key-not-found", fmt.Sprintf("Secret %s/%s has no key %q", namespace, name, key), "")
	}
	return value, ok
}

// readSecret decodes a Secret that another object refers to. weir ignores all other Secrets.
func (w *writer) readSecret(r kinds.Reporter, at intent.Path, namespace, name string) (*kinds.SecretData, bool) {
	o, ok := w.index.Secrets[intent.Key{Namespace: namespace, Name: name}]
	if !ok {
		w.dangling(r, at, &kinds.ObjectReference{Kind: "Secret", Name: name}, diag.Error, "secret-not-found", "render the Secret with the pool")
		return nil, false
	}
	var s kinds.SecretData
	var found kinds.Faults
	kinds.Decode(o, &found, &s)
	for k, v := range s.Data {
		if _, err := kinds.DecodeBase64(v); err != nil {
			// The decoder's error may quote the value, so it is not shown.
			kinds.Reporter{Ref: o.Ref, To: &found}.Error(path("data", k), "wrong-type", "data."+k+" is not base64", "write plain text under stringData")
		}
	}
	if !found.HasErrors() {
		return &s, true
	}
	for _, f := range found.List {
		f.Detail = "" // it may quote a secret value
		r.To.Add(f)
	}
	return nil, false
}

// cloudInit fills in values from Secrets. secret reports whether it found any.
func (w *writer) cloudInit(r kinds.Reporter, of *kinds.CloudInit) (out userdata.CloudInit, secret bool) {
	out = userdata.CloudInit{NTP: of.NTP, Mounts: slices.Clone(of.Mounts)}
	for i, f := range of.Files {
		at := path("spec", "files", intent.Index(i))
		if s := f.ContentFrom; s != nil {
			if f.Content != "" {
				r.Error(at, "exclusive", at.String()+" has both content and contentFrom", "write one of them")
			}
			f.Content, _ = w.secretValue(r, at.Join("contentFrom", "secret"), r.Ref.Namespace, s.Secret.Name, s.Secret.Key)
			secret = true
		}
		out.Files = append(out.Files, f.File)
	}
	for i, u := range of.Users {
		at := path("spec", "users", intent.Index(i))
		if s := u.PasswdFrom; s != nil {
			if u.Passwd != nil {
				r.Error(at, "exclusive", at.String()+" has both passwd and passwdFrom", "write one of them")
			}
			value, _ := w.secretValue(r, at.Join("passwdFrom", "secret"), r.Ref.Namespace, s.Secret.Name, s.Secret.Key)
			u.Passwd, secret = &value, true
		}
		out.Users = append(out.Users, u.User)
	}
	return out, secret
}

// eksData returns the cloud-config of an EKSConfig.
func (w *writer) eksData(d *draft, o *kinds.Decoded[kinds.EKSConfigSpec], r kinds.Reporter) intent.UserData {
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
	rules.CheckBootstrapArgs(r, s)
	rules.WarnInactive(r, s.Users)
	var secret bool
	in.CloudInit, secret = w.cloudInit(r, &s.CloudInit)
	in.DiskSetup = s.DiskSetup.UserData()
	return intent.UserData{Text: in.Text(), Format: "cloud-config", Secret: secret || s.DockerConfigJSON != nil}
}

// nodeadmData returns the MIME document of a NodeadmConfig. Endpoint and CA come from EKS, and the service
// CIDR too if the Cluster has none.
func (w *writer) nodeadmData(d *draft, o *kinds.Decoded[kinds.NodeadmConfigSpec], r kinds.Reporter) intent.UserData {
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
	rules.WarnInactive(r, s.Users)
	if k := s.Kubelet; k != nil {
		in.KubeletConfig, in.KubeletFlags = k.Config, k.Flags
	}
	if c := s.Containerd; c != nil {
		in.ContainerdConfig, in.BaseRuntimeSpec = c.Config, c.BaseRuntimeSpec
	}
	var secret bool
	in.CloudInit, secret = w.cloudInit(r, &s.CloudInit)
	in.DiskSetup = s.DiskSetup.UserData()
	out, err := in.Text()
	if errors.Is(err, userdata.ErrBoundary) {
		r.Error(path("spec", "preNodeadmCommands"), "user-data-boundary", "spec.preNodeadmCommands cannot be put in a MIME document: "+err.Error(), "")
	} else if err != nil {
		r.Error(path("spec"), "bad-value", err.Error(), "")
	}
	return intent.UserData{Text: out, Format: "mime", Secret: secret,
		Cluster: intent.Lookup{Kind: intent.EKSCluster, Name: d.cluster.eksName, Cluster: d.ClusterKey}}
}

// needEKS reports a configuration for EKS nodes in a cluster that is not an EKS cluster.
func (d *draft) needEKS(kind string) bool {
	if !d.cluster.eks {
		d.AtMachinePool.Error(kinds.BootstrapPath.Join("configRef", "kind"), "not-eks", fmt.Sprintf("%s is for EKS nodes, but cluster %s is not an EKS cluster", kind, d.ClusterKey),
			"the Cluster's controlPlaneRef must be an AWSManagedControlPlane, or the configuration a KubeadmConfig")
	}
	return d.cluster.eks
}
