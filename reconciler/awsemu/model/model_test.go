package model_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/awsemu/model"
)

// request is a signed request to a service.
func request(t *testing.T, service, method, path, target, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://localhost"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AKIA/20260301/eu-west-1/"+service+"/aws4_request, SignedHeaders=host, Signature=00")
	if target != "" {
		r.Header.Set("X-Amz-Target", target)
	}
	return r
}

// TestFind holds requests of every protocol against the models: right ones have no
// fault, and each kind of fault is found, at its place.
func TestFind(t *testing.T) {
	const (
		asg  = "Version=2011-01-01&Action="
		ec2  = "Version=2016-11-15&Action="
		node = "/clusters/c/node-groups"
	)
	type call struct{ service, method, path, target, body string }
	group := func(rest string) call {
		return call{"autoscaling", "POST", "/", "", asg + "CreateAutoScalingGroup&AutoScalingGroupName=g&MinSize=0&MaxSize=1" + rest}
	}
	template := func(rest string) call {
		return call{"ec2", "POST", "/", "", ec2 + "CreateLaunchTemplate&LaunchTemplateName=web&LaunchTemplateData.ImageId=ami-1" + rest}
	}
	nodes := func(rest string) call {
		return call{"eks", "POST", node, "", `{"nodegroupName":"n","nodeRole":"r","subnets":["s"]` + rest + "}"}
	}
	put := func(rest string) call {
		return call{"ssm", "POST", "/", "AmazonSSM.PutParameter", `{"Name":"/a","Value":"v"` + rest + "}"}
	}
	for name, tc := range map[string]struct {
		call call
		want string // "" for none
	}{
		"group":                  {group("&Tags.member.1.Key=a&NewInstancesProtectedFromScaleIn=True"), ""},
		"template":               {template("&LaunchTemplateData.BlockDeviceMapping.1.Ebs.VolumeSize=20&TagSpecification.1.ResourceType=launch-template"), ""},
		"new type":               {template("&LaunchTemplateData.InstanceType=z99.large"), ""},
		"nodes":                  {nodes(`,"labels":{"a":"b"},"scalingConfig":{"minSize":1}`), ""},
		"parameter":              {put(`,"Type":"SecureString"`), ""},
		"query string":           {call{"eks", "GET", node + "?maxResults=5", "", ""}, ""},
		"group, unknown":         {group("&Colour=red"), "Colour: the operation has no such member"},
		"group, unknown inside":  {group("&Tags.member.1.Colour=red&Tags.member.1.Key=a"), "Tags.member.1.Colour: the operation has no such member"},
		"group, EC2's list":      {group("&Tags.1.Key=a"), "Tags.1: the operation has no such member"},
		"group, missing":         {group("&Tags.member.1.Value=a"), "tags.1.member.key: required"},
		"group, type":            {group("&DesiredCapacity=many"), `desiredCapacity: "many": Expected an integer.`},
		"group, huge":            {group("&DesiredCapacity=3000000000"), `desiredCapacity: "3000000000": Expected an integer.`},
		"group, range":           {group("&HealthCheckGracePeriod=x"), `healthCheckGracePeriod: "x": Expected an integer.`},
		"group, length":          {group("&HealthCheckType=" + strings.Repeat("x", 33)), "Member must have length less than or equal to 32"},
		"group, empty":           {group("&HealthCheckType="), "Member must have length greater than or equal to 1"},
		"group, enum":            {group("&DeletionProtection=maybe"), "Member must satisfy enum value set: [none, prevent-force-deletion, prevent-all-deletion]"},
		"template, name in JSON": {template("&LaunchTemplateData.BlockDeviceMappings.1.DeviceName=a"), "LaunchTemplateData.BlockDeviceMappings: the operation has no such member"},
		"template, type":         {template("&LaunchTemplateData.EbsOptimized=perhaps"), `LaunchTemplateData.EbsOptimized: "perhaps": Expected a boolean.`},
		"template, enum":         {template("&LaunchTemplateData.MetadataOptions.HttpTokens=none"), "Member must satisfy enum value set: [optional, required]"},
		"template, missing":      {call{"ec2", "POST", "/", "", ec2 + "CreateLaunchTemplate&LaunchTemplateName=web"}, "LaunchTemplateData: required"},
		"template, in a value":   {template("&LaunchTemplateData=x"), "LaunchTemplateData: the operation has no such member"},
		"nodes, unknown":         {nodes(`,"colour":"red"`), "colour: the operation has no such member"},
		"nodes, label in body":   {nodes(`,"clusterName":"c"`), "clusterName: the operation has no such member"},
		"nodes, type":            {nodes(`,"diskSize":"20"`), `diskSize: "20": Expected an integer.`},
		"nodes, range":           {nodes(`,"scalingConfig":{"maxSize":0}`), "scalingConfig.maxSize: \"0\": Member must have value greater than or equal to 1"},
		"nodes, enum in a list":  {nodes(`,"taints":[{"effect":"NEVER"}]`), `taints.1.member.effect: "NEVER": Member must satisfy enum`},
		"nodes, map":             {nodes(`,"labels":{"a":"` + strings.Repeat("x", 64) + `"}`), "Map value must satisfy constraint: [Member must have length less than or equal to 63]"},
		"nodes, query":           {call{"eks", "GET", node + "?colour=red", "", ""}, "colour: the operation has no such member"},
		"nodes, query's range":   {call{"eks", "GET", node + "?maxResults=101", "", ""}, "Member must have value less than or equal to 100"},
		"parameter, secret":      {put(`,"Tier":"Gold"`), `tier: "Gold": Member must satisfy enum`},
		"parameter, not JSON":    {call{"ssm", "POST", "/", "AmazonSSM.PutParameter", "{"}, "not a valid JSON object"},
		"no such operation":      {call{"ec2", "POST", "/", "", ec2 + "RequestSpotFleet"}, "ec2 RequestSpotFleet 2016-11-15: the operation has no such member"},
		"no such path":           {call{"eks", "GET", "/nothing", "", ""}, "eks GET /nothing"},
		"another version":        {call{"ec2", "POST", "/", "", "Version=2014-01-01&Action=DescribeVpcs"}, "ec2 DescribeVpcs 2014-01-01"},
	} {
		t.Run(name, func(t *testing.T) {
			c := tc.call
			_, faults := model.Find(request(t, c.service, c.method, c.path, c.target, c.body), []byte(c.body))
			switch {
			case tc.want == "" && len(faults) > 0:
				t.Errorf("faults = %v, want none", faults)
			case tc.want != "" && (len(faults) != 1 || !strings.Contains(faults[0].String(), tc.want)):
				t.Errorf("faults = %v, want one with %q", faults, tc.want)
			}
		})
	}
}

// TestSensitive wants no secret in a fault.
func TestSensitive(t *testing.T) {
	body := `{"Name":"/a","Value":7}`
	_, faults := model.Find(request(t, "ssm", "POST", "/", "AmazonSSM.PutParameter", body), []byte(body))
	if len(faults) != 1 || faults[0].Value != "" {
		t.Errorf("faults = %v", faults)
	}
}

// TestCheckAnswer holds answers against the models.
func TestCheckAnswer(t *testing.T) {
	for _, tc := range []struct{ service, operation, body, want string }{
		{"ec2", "DescribeVpcs", `<DescribeVpcsResponse><requestId>r</requestId><vpcSet><item><vpcId>v</vpcId></item></vpcSet></DescribeVpcsResponse>`, ""},
		{"ec2", "DescribeVpcs", `<DescribeVpcsResponse><vpcSet><item><VpcId>v</VpcId></item></vpcSet></DescribeVpcsResponse>`, "vpcSet.1.VpcId"},
		{"ec2", "DescribeVpcs", `<DescribeVpcsResponse><vpcSet><member/></vpcSet></DescribeVpcsResponse>`, "vpcSet.member"},
		{"ec2", "DescribeVpcs", `<DescribeVpcsResponse><vpcSet><item><isDefault>maybe</isDefault></item></vpcSet></DescribeVpcsResponse>`, "Expected a boolean"},
		{"ec2", "DescribeVpcs", `<DescribeVpcsResult/>`, "DescribeVpcsResult"},
		{"sts", "GetCallerIdentity", `<GetCallerIdentityResponse><GetCallerIdentityResult><Account>1</Account></GetCallerIdentityResult><ResponseMetadata/></GetCallerIdentityResponse>`, ""},
		{"sts", "GetCallerIdentity", `<GetCallerIdentityResponse><Account>1</Account></GetCallerIdentityResponse>`, "Account"},
		{"eks", "ListClusters", `{"clusters":["a"]}`, ""},
		{"eks", "ListClusters", `{"Clusters":["a"]}`, "Clusters"},
		{"eks", "ListClusters", `{"clusters":"a"}`, "Expected a list"},
		{"eks", "ListClusters", `[]`, "JSON object"},
	} {
		faults := model.Services()[tc.service].Operations[tc.operation].CheckAnswer([]byte(tc.body))
		switch {
		case tc.want == "" && len(faults) > 0:
			t.Errorf("%s: faults = %v, want none", tc.body, faults)
		case tc.want != "" && (len(faults) != 1 || !strings.Contains(faults[0].String(), tc.want)):
			t.Errorf("%s: faults = %v, want one with %q", tc.body, faults, tc.want)
		}
	}
}

// TestDataIsWhatGenWrites writes the tables anew where the models of the same
// release are installed.
func TestDataIsWhatGenWrites(t *testing.T) {
	source := model.Services()["ec2"].Source
	found, err := exec.CommandContext(t.Context(), "python3", "-c", "import botocore; print('botocore', botocore.__version__, 'of')").Output()
	if err != nil || !strings.HasPrefix(source, strings.TrimSpace(string(found))) {
		t.Skipf("the models of %s are not installed", source)
	}
	out := t.TempDir()
	if said, err := exec.CommandContext(t.Context(), "go", "run", "./gen", "-out", out).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	for name := range model.Services() {
		have, err := os.ReadFile(filepath.Join("data", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		made, err := os.ReadFile(filepath.Join(out, name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		// A model file's date is that of its installation.
		_, have1, _ := strings.Cut(string(have), "\n\"name\"")
		_, made1, _ := strings.Cut(string(made), "\n\"name\"")
		if have1 != made1 {
			t.Errorf("data/%s.json differs from what gen writes: run go generate", name)
		}
	}
}
