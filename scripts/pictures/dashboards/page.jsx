// page.jsx - one dashboard of deploy/chart/dashboards with Grafana's own components, for make.sh's pictures. It is bundled with BOARD, the
// dashboard's JSON, and ANSWERS, what a Prometheus answered to its queries (e2e/versions/record.py).
import {
  createTheme, FieldType, getDisplayProcessor, getFieldDisplayName, renderLegendFormat, standardTransformers, standardTransformersRegistry,
  ThemeContext, toDataFrame, transformDataFrame, dateTime,
} from '@grafana/data';
import { BigValue, GlobalStyles, PanelChrome, Table, TimeSeries } from '@grafana/ui';
import { createRoot } from 'react-dom/client';
import { lastValueFrom } from 'rxjs';
import answers from 'ANSWERS';
import board from 'BOARD';

const CELL = { width: 1000 / 24, height: 38, gap: 8 }; // Grafana's grid has 24 columns
const theme = createTheme({ colors: { mode: 'light' }, typography: { fontFamily: 'Inter, sans-serif' } });
const range = { from: dateTime(answers.start * 1000), to: dateTime(answers.end * 1000) };
range.raw = { from: range.from, to: range.to };
const recorded = answers.boards[board.uid.replace('torchkeeper-', '')];

standardTransformersRegistry.setInit(() => [standardTransformers.mergeTransformer, standardTransformers.organizeFieldsTransformer].map(
  (t) => ({ id: t.id, name: t.name, transformation: () => t })));

const matches = (matcher, name) => matcher.id === 'byRegexp' ? new RegExp(matcher.options.replace(/^\/|\/$/g, '')).test(name) : matcher.options === name;

// A field as the panel configures it: Grafana's defaults of that kind of panel, the dashboard's own, its overrides by name or expression.
function configure(panel, frames) {
  let index = 0;
  for (const frame of frames) {
    for (const field of frame.fields) {
      const { defaults, overrides } = panel.fieldConfig;
      const graph = panel.type === 'timeseries';
      const config = {
        thresholds: { mode: 'absolute', steps: [{ value: -Infinity, color: 'green' }] },
        ...defaults, ...field.config, color: defaults.color ?? { mode: graph ? 'palette-classic' : 'thresholds' },
        custom: { ...(graph ? { drawStyle: 'line', lineWidth: 1, lineInterpolation: 'linear' } : {}), ...defaults.custom },
      };
      for (const { properties } of overrides.filter((o) => matches(o.matcher, getFieldDisplayName(field, frame, frames)))) {
        for (const { id, value } of properties) {
          if (id.startsWith('custom.')) config.custom[id.slice('custom.'.length)] = value;
          else config[id] = value;
        }
      }
      field.config = field.type === FieldType.number ? config : {};
      field.state = { ...field.state, seriesIndex: field.type === FieldType.number ? index++ : undefined };
      field.display = getDisplayProcessor({ field, theme, timeZone: 'utc' });
    }
  }
  return frames;
}

// NaN, as of a quantile of nothing, is a gap.
const number = (text) => (text === 'NaN' ? null : Number(text));
const at = (values) => values.map(([seconds]) => seconds * 1000);

// What Grafana's data source makes of the answers: a frame for each series, or for each query of a table.
function framesOf(panel) {
  return panel.targets.flatMap((target) => {
    const found = recorded[`${panel.id} ${target.refId}`];
    if (target.format === 'table') {
      const labels = [...new Set(found.flatMap((s) => Object.keys(s.metric)))];
      return found.length === 0 ? [] : [toDataFrame({ refId: target.refId, fields: [
        { name: 'Time', type: FieldType.time, values: at(found.map((s) => s.value)) },
        ...labels.map((name) => ({ name, type: FieldType.string, values: found.map((s) => s.metric[name]) })),
        { name: `Value #${target.refId}`, type: FieldType.number, values: found.map((s) => number(s.value[1])) }] })];
    }
    return found.map((series) => {
      const values = series.values ?? [series.value];
      const name = renderLegendFormat(target.legendFormat, series.metric);
      return toDataFrame({ refId: target.refId, fields: [
        { name: 'Time', type: FieldType.time, values: at(values) },
        { name: 'Value', type: FieldType.number, labels: series.metric, values: values.map((v) => number(v[1])),
          config: name ? { displayNameFromDS: name } : {} }] });
    });
  });
}

function Content({ panel, frames, width, height }) {
  if (frames.length === 0) {
    return <div style={{ width, height, display: 'grid', placeItems: 'center', color: theme.colors.text.secondary }}>No data</div>;
  }
  if (panel.type === 'timeseries') {
    return <TimeSeries frames={frames} width={width} height={height} timeRange={range} timeZone="utc"
      legend={{ showLegend: true, calcs: [], ...panel.options.legend }} />;
  }
  if (panel.type === 'table') {
    return <Table data={frames[0]} width={width} height={height} columnMinWidth={70} />;
  }
  const field = frames[0].fields[1];
  return <BigValue theme={theme} width={width} height={height} value={field.display(field.values.at(-1))} {...panel.options} />;
}

function Panel({ panel, frames }) {
  const { x, y, w, h } = panel.gridPos;
  const box = { position: 'absolute', left: x * CELL.width, top: y * CELL.height };
  if (panel.type === 'row') {
    return <div style={{ ...box, padding: 6, fontWeight: 500 }}>{panel.title}</div>;
  }
  return <div style={box}>
    <PanelChrome title={panel.title} width={w * CELL.width - CELL.gap} height={h * CELL.height - CELL.gap}>
      {(width, height) => <Content panel={panel} frames={frames} width={width} height={height} />}
    </PanelChrome>
  </div>;
}

const panels = await Promise.all(board.panels.map(async (panel) => {
  if (panel.type === 'row') return { panel };
  const frames = await lastValueFrom(transformDataFrame(panel.transformations ?? [], framesOf(panel)));
  return { panel, frames: configure(panel, frames) };
}));
createRoot(document.getElementById('root')).render(
  <ThemeContext.Provider value={theme}>
    <GlobalStyles isExtensionSidebarOpen={false} />
    {panels.map((p) => <Panel key={p.panel.id} {...p} />)}
  </ThemeContext.Provider>);
