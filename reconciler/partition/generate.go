//go:build ignore

// This program writes table.txt, and the emulator's copy, from the AWS SDK's table of partitions. The SDK's
// own package for it is internal.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// main writes the list of AWS's partitions and regions from the data of the SDK.
func main() {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/aws/aws-sdk-go-v2").Output()
	if err != nil {
		log.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "internal/endpoints/awsrulesfn/partitions.json"))
	if err != nil {
		log.Fatal(err)
	}
	var sdk struct {
		Partitions []struct {
			ID          string
			RegionRegex string
			Outputs     struct{ DNSSuffix, DualStackDNSSuffix string }
			Regions     map[string]struct{}
		}
	}
	if err := json.Unmarshal(data, &sdk); err != nil {
		log.Fatal(err)
	}
	var out bytes.Buffer
	for _, p := range sdk.Partitions {
		fmt.Fprint(&out, p.ID, " ", p.Outputs.DNSSuffix, " ", p.Outputs.DualStackDNSSuffix, " ", p.RegionRegex)
		for _, region := range slices.Sorted(maps.Keys(p.Regions)) {
			if !strings.HasSuffix(region, "-global") {
				fmt.Fprint(&out, " ", region)
			}
		}
		fmt.Fprintln(&out)
	}
	for _, name := range []string{"table.txt", "../awsemu/world/partitions.txt"} {
		if err := os.WriteFile(name, out.Bytes(), 0o644); err != nil {
			log.Fatal(err)
		}
	}
}
