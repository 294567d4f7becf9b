package eks

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"net/textproto"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// hiddenData returns the body of EKS's own launch template. It is the user's template with the image, the
// instance profile, the cluster's security group and the user data that a node needs to join.
func hiddenData(c *Cluster, ng *nodegroup, user wire.Data, imageID string) wire.Data {
	data := wire.Data{}
	for name, v := range user {
		data[name] = v
	}
	delete(data, "InstanceType") // the group's overrides name the types
	data["ImageId"] = imageID
	data["IamInstanceProfile"] = map[string]any{"Name": "eks-" + ng.UUID}
	if user == nil {
		plainData(ng, data)
	}
	if !data.Has("SecurityGroupIds") && len(data.List("NetworkInterfaces")) == 0 {
		data["SecurityGroupIds"] = []any{c.SecurityGroup}
	}
	if !ng.CustomImage {
		data["UserData"] = base64.StdEncoding.EncodeToString(mergedUserData(c, ng, user.Text("UserData")))
	}
	data["TagSpecifications"] = ng.instanceTags(user)
	// EKS gives instances tags with a slash, and does not copy this member.
	metadata := map[string]any{}
	for name, v := range data.Sub("MetadataOptions") {
		metadata[name] = v
	}
	metadata["InstanceMetadataTags"] = "disabled"
	data["MetadataOptions"] = metadata
	return data
}

// plainData adds the settings that EKS uses if the user gives no launch template.
func plainData(ng *nodegroup, data wire.Data) {
	data["BlockDeviceMappings"] = plainDisk(ng.AMIType, *ng.DiskGiB)
	data["MetadataOptions"] = map[string]any{"HttpPutResponseHopLimit": "2"}
	if ng.RemoteAccess != nil && ng.RemoteAccess.Key != "" {
		data["KeyName"] = ng.RemoteAccess.Key
	}
}

// plainDisk returns the volume that a nodegroup's diskSize sets, which stores the containers.
func plainDisk(amiType string, gib int64) []any {
	device := "/dev/xvda"
	if strings.HasPrefix(amiType, "BOTTLEROCKET") {
		device = "/dev/xvdb"
	}
	return []any{map[string]any{"DeviceName": device, "Ebs": map[string]any{
		"DeleteOnTermination": "true", "VolumeSize": wire.Decimal(gib), "VolumeType": "gp3",
	}}}
}

// checkDisks refuses a root volume that is smaller than its image's snapshot. The size comes from the
// request or the launch template.
func (r *Region) checkDisks(amiType, imageID string, diskGiB *int64, user wire.Data) *wire.Error {
	if r.Trusting {
		return nil
	}
	if diskGiB != nil {
		user = wire.Data{"BlockDeviceMappings": plainDisk(amiType, *diskGiB)}
	}
	if err := r.ec2.CheckVolumeSizes(imageID, user); err != nil {
		return refused("%s", err.Message)
	}
	return nil
}

// instanceTags returns the user's tag specifications with EKS's tags for instances.
func (ng *nodegroup) instanceTags(user wire.Data) []any {
	ts := ec2.TagsFor(user, "instance")
	ts.Set("eks:cluster-name", ng.Cluster)
	ts.Set("eks:nodegroup-name", ng.Name)
	var list []any
	for _, t := range ts {
		list = append(list, map[string]any{"Key": t.Key, "Value": t.Value})
	}
	out := []any{map[string]any{"ResourceType": "instance", "Tags": list}}
	for _, s := range user.List("TagSpecifications") {
		if s.Text("ResourceType") != "instance" {
			out = append(out, map[string]any(s))
		}
	}
	return out
}

// mergedUserData joins the user's user data with EKS's additions.
func mergedUserData(c *Cluster, ng *nodegroup, user string) []byte {
	raw, err := base64.StdEncoding.DecodeString(user)
	if err != nil {
		raw = nil // it was checked before
	}
	kind := amiKinds()[ng.AMIType]
	if kind.family == "BOTTLEROCKET" {
		own := fmt.Sprintf("[settings.kubernetes]\napi-server = %q\ncluster-certificate = %q\ncluster-name = %q\n", c.Endpoint, c.CertificateData, c.Name)
		return append(append(bytes.TrimRight(raw, "\n"), '\n'), own...)
	}
	own, contentType := fmt.Sprintf("#!/bin/bash\nset -ex\n/etc/eks/bootstrap.sh %s --b64-cluster-ca %s --apiserver-endpoint %s\n", c.Name, c.CertificateData, c.Endpoint), "text/x-shellscript; charset=\"us-ascii\""
	if kind.family == "AL2023" {
		contentType = "application/node.eks.aws"
		own = fmt.Sprintf("apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  cluster:\n    apiServerEndpoint: %s\n    certificateAuthority: %s\n    cidr: %s\n    name: %s\n", c.Endpoint, c.CertificateData, c.ServiceCIDR, c.Name)
	}
	return joinParts(raw, contentType, own)
}

// joinParts writes a multipart document of the user's parts and one additional part.
func joinParts(user []byte, contentType, own string) []byte {
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	if err := w.SetBoundary("eks-" + world.Hash(string(user)+own, 24)); err != nil {
		return nil
	}
	_ = eachPart(user, func(header textproto.MIMEHeader, content []byte) error {
		return writePart(w, header, content)
	}) // a document that is not multipart was refused before
	if err := writePart(w, textproto.MIMEHeader{"Content-Type": {contentType}}, []byte(own)); err != nil {
		return nil
	}
	if err := w.Close(); err != nil {
		return nil
	}
	return append([]byte("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\""+w.Boundary()+"\"\n\n"), body.Bytes()...)
}

func writePart(w *multipart.Writer, header textproto.MIMEHeader, content []byte) error {
	part, err := w.CreatePart(header)
	if err != nil {
		return err
	}
	_, err = part.Write(content)
	return err
}

// eachPart visits the parts of a MIME multipart document. An empty document has no parts.
func eachPart(document []byte, visit func(textproto.MIMEHeader, []byte) error) error {
	if len(bytes.TrimSpace(document)) == 0 {
		return nil
	}
	m, err := mail.ReadMessage(bytes.NewReader(document))
	if err != nil {
		return err
	}
	kind, parameters, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		return err
	}
	if !strings.HasPrefix(kind, "multipart/") || parameters["boundary"] == "" {
		return fmt.Errorf("read user data: content type %q is not multipart", kind)
	}
	parts := multipart.NewReader(m.Body, parameters["boundary"])
	for {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return err
		}
		if err := visit(part.Header, content); err != nil {
			return err
		}
	}
}
