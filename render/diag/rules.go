package diag

//go:generate go test . -run TestDocument -update

// groups is the registry of codes, in the order of the document.
var groups = []group{
	{"Files and kustomizations", fileRules},
	{"Variables", variableRules},
	{"Objects and fields", fieldRules},
	{"Objects together", objectRules},
	{"Clusters, bootstrap data and images", bootstrapRules},
	{"What AWS would not take", awsRules},
	{"What AWS answers", lookupRules},
	{"Plans", planRules},
	{"Configuration and targets", configRules},
}

var fileRules = []rule{
	{"bad-patch", "e", "a patch is neither an object nor a list of JSON patch operations", "Give a strategic-merge patch apiVersion, kind and metadata.name of its object, and each operation of a JSON patch op and path; a JSON patch needs a target."},
	{"bad-path", "e", "a path names something of the wrong kind, or cannot be read", "Name a file where a file is wanted and a directory where a directory is wanted; the path is relative to the file that names it."},
	{"build-failed", "e", "kustomize refuses the build", "Run kubectl kustomize on the same directory: it shows the same fault. Mend the patch or kustomization that the message names."},
	{"deprecated-field", "ei", "a kustomization has a field that kustomize is giving up", "Write the field that took its place; kustomize edit fix does it."},
	{"duplicate-key", "e", "a mapping has the same key twice", "Keep one of the two."},
	{"exec-plugin", "e", "a kustomization runs a program, a container or a plugin that is not kustomize's own", "Run it beforehand and commit its output; a build runs no program."},
	{"helm", "e", "a kustomization inflates a Helm chart", "Render the chart and commit its output."},
	{"kustomization-cycle", "e", "a kustomization contains itself, directly or through others", "Take the entry out that leads back."},
	{"kustomization-duplicate", "e", "a directory holds several kustomization files", "Keep one of them."},
	{"kustomization-invalid", "e", "a kustomization does not have the form that kustomize reads", "Mend the field that the message names; see the fields of a Kustomization at https://kubectl.docs.kubernetes.io/references/kustomize/kustomization/."},
	{"kustomization-missing", "e", "a directory that is to be built holds no kustomization", "Add a kustomization.yaml, or correct the path."},
	{"kustomization-unknown-field", "e", "a kustomization has a field that kustomize does not know", "Correct its spelling, or remove it."},
	{"lfs-pointer", "e", "a file is a Git LFS pointer, whose content is not in the commit", "Keep the file in Git itself: git lfs untrack it and commit it again."},
	{"missing-file", "e", "a path leads to nothing in the repository", "Add the file, or correct the path; it is relative to the file that names it."},
	{"not-an-object", "e", "a document is no Kubernetes object", "Give it apiVersion, kind and metadata.name, or leave the file out of the resources."},
	{"path-escape", "e", "a path leaves the repository, or leaves the directory that it must stay in", "Move or copy the file to below the directory, or make a base of it."},
	{"remote-reference", "e", "a kustomization refers to something outside the repository", "Copy it into the repository and name its path; a build fetches nothing."},
	{"sops-encrypted", "w", "a file is encrypted by SOPS, no key is given, and it was read with placeholders", "Give a key with --age-key-file or SOPS_AGE_KEY_FILE to see what it stands for."},
	{"sops-invalid", "e", "a file that SOPS has encrypted is damaged, or in a format that is not read", "Take it from an earlier commit, or encrypt it again; YAML, JSON, dotenv and binary files are read."},
	{"sops-key-failed", "e", "the data key of an encrypted file cannot be decrypted", "Let the target's role kms:Decrypt the key, or encrypt the file again."},
	{"sops-mac-mismatch", "e", "a file was changed after SOPS had encrypted it", "Take it from an earlier commit, or encrypt it again."},
	{"sops-no-key", "e", "a file is encrypted for keys that are not given", "List one of the keys in ageKeyFiles or kmsKeyARNs of the target, or give it with --age-key-file."},
	{"symlink-escape", "e", "a symlink leads out of the repository", "Replace the symlink by the file."},
	{"timeout", "e", "the build took too long, or waited too long for others that did", "Look for bases that are included very often, or for very many objects with replacements."},
	{"too-large", "e", "a file, the build or what variables make of it is larger than is allowed", "Split the target, or take out what is large."},
	{"unsupported-field", "e", "a kustomization has a field that weir does not run", "Use what the message names in its place."},
	{"yaml-alias", "e", "the aliases of a file refer to themselves, or stand for too much", "Write the values out."},
	{"yaml-syntax", "e", "a file is no YAML", "Mend the syntax at the line and column; tabs and missing quotes are frequent causes."},
}

var variableRules = []rule{
	{"bad-variable", "e", "a text has ${ in a form that is not substituted", "Write ${VAR}, ${VAR:-default} or ${VAR:=default}, not nested; $${ stands for a literal ${."},
	{"unset-variable", "e", "a variable has no value and no default", "Give it a value in the target's configuration or with --var, write ${VAR:-default}, or $${VAR} for the text itself."},
}

var fieldRules = []rule{
	{"annotation-not-read", "w", "an annotation of weir stands on an object where it has no effect", "Write it on the infrastructure pool or on the MachinePool."},
	{"bad-enum", "e", "a field has a value that is not one of those allowed", "Write one of the values that the message names."},
	{"bad-id", "e", "the id of an AWS resource does not begin as such ids do", "Write the id as AWS shows it, such as subnet-0123456789abcdef0."},
	{"bad-name", "e", "a name, or a key of a label, is not one that Kubernetes or AWS takes", "Use lower-case letters, digits and -, beginning and ending with a letter or digit, no longer than the message says."},
	{"bad-tag", "e", "a tag is not one that AWS takes, or is weir's own", "Keep keys to 128 and values to 256 letters, digits, spaces and _ . : = + - @ /, without the prefixes aws: and weir.dev/."},
	{"bad-template", "e", "an image lookup names a variable that it does not have", "Use {{.BaseOS}} and {{.K8sVersion}}."},
	{"bad-value", "e", "a value does not have the form that its field wants", "Write it in the form that the message names."},
	{"bad-version", "e", "a version is no Kubernetes version", "Write all three parts, such as v1.31.2."},
	{"deprecated-version", "w", "an object has an API version that its project has given up", "Write the newer version; the fields are the same unless another message says so."},
	{"duplicate", "ew", "a list has two entries where each may stand once", "Remove one of them, or give them different names."},
	{"exclusive", "ew", "two fields exclude each other", "Keep the one that is meant, and remove the other."},
	{"iam-from-git", "e", "a field would have IAM roles made or changed", "Make the role by other means and write its name; weir makes and changes no roles."},
	{"incomplete", "e", "a field needs another one beside it", "Write the other field as well, or remove this one."},
	{"mismatch", "e", "two fields that must say the same say different things", "Write the same in both."},
	{"missing-required", "e", "a required field is missing", "Add the field that the message names."},
	{"not-allowed", "e", "a field may not be set on such an object", "Remove it, and write it where the message says."},
	{"not-carried", "ewi", "a field has no effect here", "Remove it, or write what the message names in its place."},
	{"not-supported", "e", "a part of the format is not supported by this version", "Remove it, or keep the pool out of weir's targets."},
	{"out-of-range", "ew", "a number is below or above what its field takes", "Write one within the range that the message names."},
	{"too-many-tags", "e", "a resource would have more tags than AWS takes", "Take tags away from additionalTags of the pool or of its cluster."},
	{"unknown-annotation", "e", "an annotation of weir is not known", "Correct its spelling, or remove it."},
	{"unknown-field", "e", "an object has a field that its kind does not have", "Correct its spelling and indentation, or remove it."},
	{"unknown-version", "e", "an object of a kind that weir reads has an API version that it does not know", "Write one of the versions that the message names."},
	{"wrong-type", "e", "a value has another type than its field", "Write a value of the type that the message names; quotes make a string of a number."},
}

var objectRules = []rule{
	{"duplicate-object", "e", "an object is in the render twice", "Give the two different names, or take one out of the resources."},
	{"name-taken", "e", "two pools want the same resource in AWS", "Rename one of the pools."},
	{"pool-not-ours", "i", "a MachinePool is left alone, because its infrastructure is not AWS's", "Nothing is to be done if that is meant; else correct infrastructureRef.kind."},
	{"pool-without-machinepool", "w", "a pool is ignored, because no MachinePool refers to it", "Add a MachinePool whose infrastructureRef names it, or remove the pool."},
	{"reference-not-found", "e", "an object refers to one that is not in the render", "Add the object to the resources, or correct the name; where a prefix renamed it, add a nameReference configuration."},
	{"reference-not-in-render", "w", "a cluster's object refers to one that is not in the render", "Add it to the resources if weir is to read it; else what it would say is taken from the target's configuration or from AWS."},
	{"replicas-out-of-bounds", "w", "spec.replicas is outside the pool's bounds", "Write a size within the bounds, or move the bounds."},
	{"shared-infrastructure", "e", "two MachinePools refer to the same pool object", "Give each MachinePool a pool object of its own."},
}

var bootstrapRules = []rule{
	{"bootstrap-kind", "e", "a bootstrap configuration has a kind that weir does not read", "Use a KubeadmConfig, EKSConfig or NodeadmConfig."},
	{"bootstrap-not-used", "w", "bootstrap data has no launch template to carry it", "Write awsLaunchTemplate: {} in the pool to use it, or remove the reference."},
	{"control-plane-not-in-render", "w", "a cluster's control plane is not in the render", "Add it to the resources if weir is to read the EKS cluster's name, version and network from it."},
	{"identity-not-allowed", "e", "a role identity does not allow the namespace of the cluster that names it", "Add the namespace to allowedNamespaces."},
	{"ignition-config", "ew", "a part of a KubeadmConfig cannot be written as Ignition, or its Container Linux Config has a flaw", "Change the field that the message names; a unit or file of one's own goes into ignition.containerLinuxConfig.additionalConfig."},
	{"ignition-object-store", "w", "user data should go to an S3 bucket, which weir does not write to", "Write spec.ignition.storageType: UnencryptedUserData, or leave storageType out; without it the pool cannot be planned."},
	{"image-unknown", "e", "it cannot be told which image a pool's machines start from", "Write awsLaunchTemplate.ami.id, or the Kubernetes version in the MachinePool."},
	{"kubeadm-join-incomplete", "w", "the nodes of a pool cannot join their cluster", "Write what the message names in joinConfiguration; without it the pool cannot be planned."},
	{"no-al2-image", "e", "EKS has no Amazon Linux 2 image for the Kubernetes version", "Choose Amazon Linux 2023."},
	{"not-eks", "e", "something that only EKS clusters have is used with another cluster", "Point the Cluster's controlPlaneRef at an AWSManagedControlPlane, or use what the message names."},
	{"secret-in-plain-field", "e", "a field outside user data holds a secret value", "Take the value out of the field, or do not mark it as secret."},
	{"secret-key-not-found", "e", "a Secret or ConfigMap lacks the key that is read", "Add the key to it, or correct its name."},
	{"secret-not-found", "e", "a Secret is not in the render", "Add it to the resources, or generate it; weir reads Secrets from Git only."},
	{"sops-ciphertext", "e", "user data holds text that is still encrypted by SOPS", "Encrypt the file that it comes from as a whole with sops, so that it carries its metadata."},
	{"static-identity", "e", "a cluster takes its AWS credentials from a Secret", "Use an AWSClusterRoleIdentity or AWSClusterControllerIdentity; weir takes no keys from Git."},
	{"topology-not-expanded", "w", "a Cluster uses a ClusterClass, which weir does not expand", "Commit the expanded objects; until then nothing of the cluster is deleted."},
	{"user-data-boundary", "e", "a part of the user data holds the boundary that parts are divided by", "Change the text that the message names."},
	{"user-data-jinja", "w", "user data holds a jinja expression that nothing expands", "Fill the value in by a command on the instance."},
	{"user-data-not-mime", "e", "EKS cannot merge its own user data into the pool's", "Use a NodeadmConfig with an AL2023 amiType, or bring an image with amiType CUSTOM or ami.id."},
	{"user-data-too-large", "e", "the user data has more bytes than EC2 takes", "Move files out of it, to where the nodes fetch them."},
}
