// Eino's backends, asked by the comparison: a JSON request a line, a JSON answer a line.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/cloudwego/eino/adk/filesystem"
)

type request struct {
	Op      string `json:"op"`
	Root    string `json:"root"`
	Path    string `json:"path"`
	Pattern string `json:"pattern"`
	Case    string `json:"case"`
	Repeat  int    `json:"repeat"`
}

type answer struct {
	Count int    `json:"count"`
	End   string `json:"end"`
}

type reply struct {
	Error   string  `json:"error,omitempty"`
	Version string  `json:"version,omitempty"`
	Wall    float64 `json:"wall"`
	Cpu     float64 `json:"cpu"`
	Grown   float64 `json:"grown"`
	Answer  answer  `json:"answer"`
}

// disk is eino's backend for files on disk, where it is built in.
var disk interface {
	GlobInfo(context.Context, *filesystem.GlobInfoRequest) ([]filesystem.FileInfo, error)
}

// load puts all files below root into a fresh backend, under their paths relative to it.
func load(root string) (*filesystem.InMemoryBackend, error) {
	files := filesystem.NewInMemoryBackend()
	err := filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name := "/" + strings.TrimPrefix(path, root+"/")
		return files.Write(context.Background(), &filesystem.WriteRequest{FilePath: name, Content: string(content)})
	})
	return files, err
}

func operate(files *filesystem.InMemoryBackend, req request) (int, error) {
	ctx := context.Background()
	switch req.Op {
	case "ls":
		found, err := files.LsInfo(ctx, &filesystem.LsInfoRequest{Path: req.Path})
		return len(found), err
	case "glob_disk":
		if disk == nil {
			return 0, fmt.Errorf("the backend for the disk is not built in")
		}
		found, err := disk.GlobInfo(ctx, &filesystem.GlobInfoRequest{Pattern: req.Pattern, Path: req.Root})
		return len(found), err
	case "glob":
		found, err := files.GlobInfo(ctx, &filesystem.GlobInfoRequest{Pattern: req.Pattern, Path: req.Path})
		return len(found), err
	case "grep":
		found, err := files.GrepRaw(ctx, &filesystem.GrepRequest{
			Pattern: req.Pattern, Path: req.Path, CaseInsensitive: req.Case == "insensitive",
		})
		return len(found), err
	}
	return 0, fmt.Errorf("no such operation: %s", req.Op)
}

func cpu() float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(used.Utime) + seconds(used.Stime)
}

func measure(files *filesystem.InMemoryBackend, req request) reply {
	if req.Repeat < 1 {
		req.Repeat = 1
	}
	runtime.GC()
	var count int
	before, start := cpu(), time.Now()
	for i := 0; i < req.Repeat; i++ {
		var err error
		if count, err = operate(files, req); err != nil {
			return reply{Error: err.Error()}
		}
	}
	wall, used := time.Since(start).Seconds(), cpu()-before
	repeat := float64(req.Repeat)
	return reply{Wall: wall / repeat, Cpu: used / repeat, Answer: answer{Count: count, End: "complete"}}
}

func main() {
	var files *filesystem.InMemoryBackend
	loaded := ""
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var req request
		var answered reply
		if err := json.Unmarshal(lines.Bytes(), &req); err != nil {
			answered.Error = err.Error()
		} else if req.Op == "hello" {
			answered.Version = runtime.Version()
		} else {
			if loaded != req.Root && req.Op != "glob_disk" {
				var err error
				if files, err = load(req.Root); err != nil {
					answered.Error = err.Error()
				} else {
					loaded = req.Root
				}
			}
			if answered.Error == "" {
				answered = measure(files, req)
			}
		}
		line, err := json.Marshal(answered)
		if err != nil {
			panic(err)
		}
		fmt.Println(string(line))
	}
}
