// Package agent stands in for what a real node brings along: GPUs and storage.
//
// It keeps each node's nvidia.com/gpu count at -gpus (the kubelet forgets it at each restart), and
// it makes a folder under -volumes for each claim of the storage class whose provisioner it is.
package agent

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

type options struct {
	kubeconfig string
	gpus       int64
	volumes    string
	healthAddr string
}

func parseOptions(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("host-agent", flag.ContinueOnError)
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "file with the API server's address and our client certificate")
	f.Int64Var(&o.gpus, "gpus", 0, "how many nvidia.com/gpu each node shows")
	f.StringVar(&o.volumes, "volumes", "", "absolute path of the folder that holds the volumes")
	f.StringVar(&o.healthAddr, "health", "127.0.0.1:10262", "address of /healthz")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	switch {
	case o.kubeconfig == "":
		return o, fmt.Errorf("-kubeconfig must be given")
	case o.gpus < 0 || o.gpus > 1024:
		return o, fmt.Errorf("-gpus is %d, expected 0 to 1024", o.gpus)
	case !filepath.IsAbs(o.volumes):
		return o, fmt.Errorf("-volumes is %q, expected an absolute path", o.volumes)
	}
	return o, nil
}

// Run works until ctx ends; args are the flags of parseOptions.
func Run(ctx context.Context, args []string) error {
	o, err := parseOptions(args)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.volumes, 0o711); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}

	shared := informers.NewSharedInformerFactory(client, 10*time.Minute)
	keeper := newGPUKeeper(client, shared, o.gpus)
	volumes := newProvisioner(client, shared, o.volumes)
	shared.Start(ctx.Done())
	go keeper.run(ctx)
	go volumes.run(ctx)
	return serveHealth(ctx, o.healthAddr, shared)
}

// serveHealth answers "ok" once every cache has been filled; it returns when ctx ends.
func serveHealth(ctx context.Context, addr string, shared informers.SharedInformerFactory) error {
	synced := make(chan struct{})
	go func() {
		for _, ok := range shared.WaitForCacheSync(ctx.Done()) {
			if !ok {
				return
			}
		}
		close(synced)
	}()
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		select {
		case <-synced:
			fmt.Fprintln(w, "ok")
		default:
			http.Error(w, "caches are not filled yet", http.StatusServiceUnavailable)
		}
	})
	server := &http.Server{Addr: addr, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.ListenAndServe(); err != http.ErrServerClosed {
		return err
	}
	return nil
}
